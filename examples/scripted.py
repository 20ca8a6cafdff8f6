"""A model that follows a script, so that the examples need no key and no network.

    def script(chat):
        if not chat.heard("get_order"):
            return Use("get_order", order=chat.find(r"[A-Z]-[0-9]{4}"))
        return f"It is on its way: {chat.said('get_order')['status']}."

    os.environ["OPENAI_BASE_URL"] = serve(script) + "/v1"

It speaks OpenAI (Chat Completions and Responses), Anthropic (whole and streamed) and Ollama. What it says follows from
the conversation alone, so every run can be repeated. Where OFFLINE_LOG names a file, each request that arrives here
leaves a line in it. Standard library only: it may be started by any Python.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class Use:
    """The model asks for a tool."""

    def __init__(self, tool: str, **arguments: Any) -> None:
        self.tool, self.arguments = tool, arguments


@dataclass
class Chat:
    """What the model is shown: the same for every provider."""

    users: list[str] = field(default_factory=list)
    """What the user has said, oldest first."""

    results: list[tuple[str, str]] = field(default_factory=list)
    """What tools have answered since the user last spoke: name and text, oldest first."""

    tools: set[str] = field(default_factory=set)
    """The tools it may ask for."""

    def heard(self, tool: str) -> bool:
        """Whether this tool has answered."""
        return any(name == tool for name, _ in self.results)

    def said(self, tool: str) -> Any:
        """What it answered last; an object where that was JSON, a text where it was not, None where it has not."""
        text = next((text for name, text in reversed(self.results) if name == tool), None)
        try:
            return None if text is None else json.loads(text)
        except ValueError:
            return text

    def find(self, pattern: str) -> str:
        """What the pattern found last in all that the user has said; empty where it found nothing."""
        found = re.findall(pattern, "\n".join(self.users))
        return found[-1] if found else ""


Script = Callable[[Chat], "Use | str"]
Tools = Mapping[str, Callable[[dict[str, Any]], Any]]


def serve(script: Script, tools: Tools | None = None, port: int = 0) -> str:
    """Serve the model, and HTTP tools by their path, on the loopback until the process ends; the URL."""

    class Connection(_Connection):
        model, routes = staticmethod(script), dict(tools or {})

    server = ThreadingHTTPServer(("127.0.0.1", port), Connection)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def reply(script: Script, path: str, asked: dict[str, Any]) -> tuple[int, Any]:
    """The model's answer to a request: its status, and a JSON document or, streamed, a list of server-sent events."""
    log(f"POST {path}")
    for ending, (read, write) in _WIRES.items():
        if path.endswith(ending):
            step = script(read(asked))
            said = write(step, asked, sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:20])
            return 200, list(_anthropic_events(said)) if asked.get("stream") and ending == "/messages" else said
    return 404, {"error": {"message": f"nothing is served at {path}"}}


def log(line: str) -> None:
    """Note that something arrived in the world outside the agent."""
    if file := os.environ.get("OFFLINE_LOG"):
        with Path(file).open("a") as lines:
            lines.write(line + "\n")


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


class _Reader:
    """Collects a conversation into a Chat; who answered which call is known by the call's id."""

    def __init__(self, tools: Any) -> None:
        self.chat = Chat(tools={(tool.get("function") or tool).get("name", "") for tool in tools or ()})
        self.names: dict[str, str] = {}

    def user(self, text: str) -> None:
        self.chat.users.append(text)
        self.chat.results.clear()

    def result(self, call: str, content: Any) -> None:
        self.chat.results.append((self.names.get(call, call), _text(content)))


def _read_openai(asked: dict[str, Any]) -> Chat:
    reader = _Reader(asked.get("tools"))
    for message in asked["messages"]:
        for call in message.get("tool_calls") or ():
            reader.names[call.get("id", "")] = call["function"]["name"]
        if message["role"] == "user":
            reader.user(_text(message["content"]))
        elif message["role"] == "tool":
            reader.result(message.get("tool_call_id") or message.get("tool_name", ""), message["content"])
    return reader.chat


def _read_responses(asked: dict[str, Any]) -> Chat:
    reader, items = _Reader(asked.get("tools")), asked["input"]
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        if item.get("type") == "function_call":
            reader.names[item["call_id"]] = item["name"]
        elif item.get("type") == "function_call_output":
            reader.result(item["call_id"], item["output"])
        elif item.get("role") == "user":
            reader.user(_text(item["content"]))
    return reader.chat


def _read_anthropic(asked: dict[str, Any]) -> Chat:
    reader = _Reader(asked.get("tools"))
    for message in asked["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_use":
                reader.names[block["id"]] = block["name"]
            elif block["type"] == "tool_result":
                reader.result(block["tool_use_id"], block.get("content"))
            elif block["type"] == "text" and message["role"] == "user":
                reader.user(block["text"])
    return reader.chat


def _write_openai(step: Use | str, asked: dict[str, Any], mark: str) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": step if isinstance(step, str) else None}
    if isinstance(step, Use):
        function = {"name": step.tool, "arguments": json.dumps(step.arguments)}
        message["tool_calls"] = [{"id": f"call_{mark}", "type": "function", "function": function}]
    finish = "stop" if isinstance(step, str) else "tool_calls"
    return {
        "id": f"chatcmpl-{mark}",
        "object": "chat.completion",
        "created": 1767225600,
        "model": asked.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60},
    }


def _write_responses(step: Use | str, asked: dict[str, Any], mark: str) -> Any:
    item: dict[str, Any]
    if isinstance(step, Use):
        item = {"type": "function_call", "id": f"fc_{mark}", "call_id": f"call_{mark}", "status": "completed"}
        item |= {"name": step.tool, "arguments": json.dumps(step.arguments)}
    else:
        text = {"type": "output_text", "text": step, "annotations": []}
        item = {"type": "message", "id": f"msg_{mark}", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": f"resp_{mark}",
        "object": "response",
        "created_at": 1767225600,
        "status": "completed",
        "model": asked.get("model"),
        "output": [item],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": asked.get("tools") or [],
        "usage": {
            "input_tokens": 50,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 60,
        },
    }


def _write_anthropic(step: Use | str, asked: dict[str, Any], mark: str) -> Any:
    if isinstance(step, str):
        block: dict[str, Any] = {"type": "text", "text": step}
    else:
        block = {"type": "tool_use", "id": f"toolu_{mark}", "name": step.tool, "input": step.arguments}
    return {
        "id": f"msg_{mark}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model"),
        "content": [block],
        "stop_reason": "end_turn" if isinstance(step, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 50, "output_tokens": 10},
    }


def _anthropic_events(message: dict[str, Any]) -> Iterator[str]:
    """The same reply as a stream, a word in each event."""
    (block,) = message["content"]
    text = block.get("text", "")
    started = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": 50, "output_tokens": 1}}
    empty = {**block, "text": ""} if text else {**block, "input": {}}
    if text:
        deltas = [{"type": "text_delta", "text": word} for word in re.findall(r"\S+\s*", text)]
    else:
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    ending = {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": {"output_tokens": 10}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", **ending},
        {"type": "message_stop"},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _write_ollama(step: Use | str, asked: dict[str, Any], mark: str) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": step if isinstance(step, str) else ""}
    if isinstance(step, Use):
        message["tool_calls"] = [{"function": {"name": step.tool, "arguments": step.arguments}}]
    counts = {"prompt_eval_count": 50, "eval_count": 10}
    about = {"model": asked.get("model"), "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
    return {**about, "message": message, **counts}


_WIRES: dict[str, tuple[Callable[[dict[str, Any]], Chat], Callable[[Use | str, dict[str, Any], str], Any]]] = {
    "/chat/completions": (_read_openai, _write_openai),
    "/responses": (_read_responses, _write_responses),
    "/messages": (_read_anthropic, _write_anthropic),
    "/api/chat": (_read_openai, _write_ollama),
}


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: Script
    routes: Tools

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """The terminal belongs to flakestorm."""

    def _answer(self) -> None:
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        asked = json.loads(body) if body else dict(parse_qsl(target.query))
        tool = self.routes.get(target.path)
        if tool is None:
            status, said = reply(self.model, target.path, asked)
        else:
            log(f"{self.command} {target.path}")
            status, said = 200, tool(asked)
        stream = isinstance(said, list) and tool is None
        content = "".join(said).encode() if stream else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
