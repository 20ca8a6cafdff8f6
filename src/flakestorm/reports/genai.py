"""What an exchange is in the words of OpenTelemetry's GenAI conventions: its span's name and attributes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from flakestorm.wire import gen_ai

__all__ = ["Conversation", "meaning", "messages"]

Conversation: TypeAlias = Callable[[Any], Sequence[Mapping[str, Any]]]
"""Reads a request's body, of any provider, as messages of OpenAI's Chat Completions."""

Doc = dict[str, Any]

_PROVIDER = {
    "openai_chat": "openai", "openai_responses": "openai", "completions": "openai", "embeddings": "openai",
    "anthropic": "anthropic", "gemini": "gcp.gemini", "ollama": "ollama", "bedrock": "aws.bedrock",
}  # fmt: skip


def meaning(exchange: Mapping[str, Any], conversation: Conversation) -> tuple[str, Doc]:
    """The name of an exchange's span and its attributes, by its kind; an attribute that is None is left out.

    Args:
        exchange: in the shape of `flakestorm-tape/1`'s `exchanges`.
        conversation: reads the messages in a model request.
    """
    request, reply, name = exchange["request"], exchange["reply"], exchange["name"]
    body = request["body"]
    if exchange["kind"] == "llm":
        operation = "embeddings" if exchange["wire"] == "embeddings" else "chat"
        answer = {
            "role": "assistant", "content": reply["text"], "finish_reason": reply["finish"],
            "tool_calls": [{"id": c["id"], "function": c} for c in reply["tool_calls"]],
        }  # fmt: skip
        answered = bool(reply["text"] or reply["tool_calls"]) and reply["status"] < 400
        return f"{operation} {name}", {
            gen_ai.OPERATION: operation,
            gen_ai.PROVIDER: _PROVIDER.get(exchange["wire"], exchange["wire"] or "unknown"),
            gen_ai.MODEL: name,
            gen_ai.INPUT: messages(conversation(body)),
            gen_ai.OUTPUT: messages([answer]) if answered else None,
            gen_ai.FINISH: [reply["finish"]] if reply["finish"] else None,
            gen_ai.TOKENS_IN: reply["usage"]["input"],
            gen_ai.TOKENS_OUT: reply["usage"]["output"],
        }
    if exchange["kind"] in ("tool", "mcp"):
        within = body.get("params") if exchange["kind"] == "mcp" and isinstance(body, dict) else None
        given = within.get("arguments") if isinstance(within, dict) else body
        if given in ("", None):
            given = dict(parse_qsl(urlsplit(request["url"]).query))
        return f"{gen_ai.EXECUTE_TOOL} {name}", {
            gen_ai.OPERATION: gen_ai.EXECUTE_TOOL,
            gen_ai.TOOL: name,
            "gen_ai.tool.type": "function" if request["method"] == "CALL" else "extension",
            gen_ai.ARGUMENTS: _json(given),
            gen_ai.RESULT: reply["text"] or None,
            "mcp.method.name": body.get("method") if exchange["kind"] == "mcp" and isinstance(body, dict) else None,
            **_http(request),
        }
    return f"{request['method']} {name}", _http(request)


def _http(request: Mapping[str, Any]) -> Doc:
    over = request["url"].startswith(("http://", "https://"))
    return {"http.request.method": request["method"], "url.full": request["url"]} if over else {}


def messages(given: Sequence[Mapping[str, Any]]) -> str | None:
    """Messages of Chat Completions in the form of the conventions, as JSON text; None where there are none."""
    found = []
    for message in given:
        parts: list[Doc] = []
        if message["role"] == "tool":
            key = message.get("tool_call_id")
            parts.append({"type": "tool_call_response", "id": key, "response": message.get("content")})
        elif message.get("content"):
            parts.append({"type": "text", "content": message["content"]})
        for call in message.get("tool_calls") or ():
            function = call["function"]
            parts.append({"type": "tool_call", "id": call["id"], "name": function["name"],
                          "arguments": _read(function["arguments"])})  # fmt: skip
        finish = message.get("finish_reason")
        found.append({"role": message["role"], "parts": parts, **({"finish_reason": finish} if finish else {})})
    return _json(found) if found else None


def _read(arguments: Any) -> Any:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
