"""The official SDKs behind one small face: ask, and be shown what their caller is shown.

Each talks to the scripted upstream by its own HTTP client, so in-process seams hold it as they hold an agent's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import openai

from flakestorm.core.call import Reply
from model_replies import TOOLS, request_of
from upstream import Canned, Upstream

__all__ = ["FACES", "Face", "Shown", "canned"]

MESSAGES: Any = [{"role": "user", "content": "Book it."}]


@dataclass(frozen=True)
class Shown:
    """What an SDK shows its caller of one answer.

    Args:
        text, refusal: as far as they are told apart.
        calls: name and arguments of each tool call; arguments that are text and no JSON stay text.
        finish: the provider's word.
    """

    text: str = ""
    refusal: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    finish: str | None = None


class Face:
    """One SDK. `paths` are those it asks, whole and streamed; `attempts` how often it tries."""

    wire: str
    paths: tuple[str, str]
    attempts = 1

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, *, stream: bool) -> Shown:
        """One answer, put together by the SDK."""
        raise NotImplementedError

    def parts(self) -> Iterator[Any]:
        """The pieces of a streamed answer as the SDK hands them out."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of connections."""


def _read(arguments: object) -> Any:
    if not isinstance(arguments, str):
        return dict(arguments) if arguments else {}  # type: ignore[call-overload]
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


class _OpenAI(Face):
    attempts = 3

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="k")

    def close(self) -> None:
        self.client.close()


class Chat(_OpenAI):
    wire, paths = "openai_chat", ("/v1/chat/completions", "/v1/chat/completions")

    def ask(self, *, stream: bool) -> Shown:
        if stream:
            with self.client.chat.completions.stream(model="m", messages=MESSAGES) as events:
                for _ in events:
                    pass
                choice: Any = events.current_completion_snapshot.choices[0]
        else:
            tools: Any = request_of(self.wire)["tools"]
            choice = self.client.chat.completions.create(model="m", messages=MESSAGES, tools=tools).choices[0]
        message = choice.message
        calls = tuple((call.function.name, _read(call.function.arguments)) for call in message.tool_calls or ())
        return Shown(message.content or "", message.refusal or "", calls, choice.finish_reason)

    def parts(self) -> Iterator[Any]:
        yield from self.client.chat.completions.create(model="m", messages=MESSAGES, stream=True)


class Responses(_OpenAI):
    wire, paths = "openai_responses", ("/v1/responses", "/v1/responses")

    def ask(self, *, stream: bool) -> Shown:
        if stream:
            with self.client.responses.stream(model="m", input="Book it.") as events:
                *_, last = events
            response: Any = last.response  # type: ignore[union-attr]
        else:
            tools: Any = request_of(self.wire)["tools"]
            response = self.client.responses.create(model="m", input="Book it.", tools=tools)
        said = [part for item in response.output if item.type == "message" for part in item.content]
        calls = tuple((item.name, _read(item.arguments)) for item in response.output if item.type == "function_call")
        reason = response.incomplete_details.reason if response.incomplete_details else None
        refusal = "".join(part.refusal for part in said if part.type == "refusal")
        return Shown(response.output_text, refusal, calls, reason or response.status)

    def parts(self) -> Iterator[Any]:
        yield from self.client.responses.create(model="m", input="Book it.", stream=True)


class Messages(Face):
    wire, paths, attempts = "anthropic", ("/v1/messages", "/v1/messages"), 3

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.client = anthropic.Anthropic(base_url=url, api_key="k")

    def ask(self, *, stream: bool) -> Shown:
        tools: Any = request_of(self.wire)["tools"]
        asked: Any = {"model": "m", "max_tokens": 99, "messages": MESSAGES, "tools": tools}
        if stream:
            with self.client.messages.stream(**asked) as events:
                message: Any = events.get_final_message()
        else:
            message = self.client.messages.create(**asked)
        text = "".join(block.text for block in message.content if block.type == "text")
        calls = tuple((block.name, _read(block.input)) for block in message.content if block.type == "tool_use")
        return Shown(text, "", calls, message.stop_reason)

    def parts(self) -> Iterator[Any]:
        yield from self.client.messages.create(model="m", max_tokens=99, messages=MESSAGES, stream=True)

    def close(self) -> None:
        self.client.close()


class Gemini(Face):
    wire = "gemini"
    paths = ("/v1/models/m:generateContent", "/v1/models/m:streamGenerateContent")

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from google import genai

        self.client = genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url))
        declared = [{"name": name, "parameters_json_schema": schema} for name, schema in TOOLS.items()]
        off = {"disable": True}
        self.config: Any = {"tools": [{"function_declarations": declared}], "automatic_function_calling": off}

    def ask(self, *, stream: bool) -> Shown:
        if stream:
            chunks: list[Any] = list(self.parts())
        else:
            chunks = [self.client.models.generate_content(model="m", contents="Book it.", config=self.config)]
        answers = [candidate for chunk in chunks for candidate in (chunk.candidates or [])[:1]]
        parts = [part for answer in answers for part in (answer.content.parts if answer.content else None) or []]
        text = "".join(part.text for part in parts if part.text)
        calls = tuple((part.function_call.name, _read(part.function_call.args)) for part in parts if part.function_call)
        ends = [answer.finish_reason.value for answer in answers if answer.finish_reason]
        blocked = [chunk.prompt_feedback.block_reason.value for chunk in chunks if chunk.prompt_feedback]
        return Shown(text, "", calls, (ends or blocked or [None])[-1])

    def parts(self) -> Iterator[Any]:
        yield from self.client.models.generate_content_stream(model="m", contents="Book it.", config=self.config)

    def close(self) -> None:
        self.client.close()


class Ollama(Face):
    wire, paths = "ollama", ("/api/chat", "/api/chat")

    def __init__(self, url: str) -> None:
        super().__init__(url)
        import ollama

        self.client = ollama.Client(host=url)
        self.tools: Any = request_of(self.wire)["tools"]

    def ask(self, *, stream: bool) -> Shown:
        whole = () if stream else (self.client.chat(model="m", messages=MESSAGES, tools=self.tools),)
        chunks = list(self.parts() if stream else whole)
        calls = [call.function for chunk in chunks for call in chunk.message.tool_calls or ()]
        text = "".join(chunk.message.content or "" for chunk in chunks)
        return Shown(text, "", tuple((call.name, _read(call.arguments)) for call in calls), chunks[-1].done_reason)

    def parts(self) -> Iterator[Any]:
        yield from self.client.chat(model="m", messages=MESSAGES, tools=self.tools, stream=True)

    def close(self) -> None:
        self.client._client.close()


FACES: tuple[type[Face], ...] = (Chat, Responses, Messages, Gemini, Ollama)


def canned(up: Upstream, face: Face, reply: Reply, *, stream: bool) -> None:
    """Let the upstream answer this SDK with this reply."""
    pieces = (reply.body,) if isinstance(reply.body, bytes) else tuple(reply.body)  # type: ignore[arg-type]
    up.reply(face.paths[stream], Canned(pieces, reply.status, reply.headers, chunked=stream))
