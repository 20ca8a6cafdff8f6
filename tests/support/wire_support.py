"""Recorded provider traffic for the wire tests: VCR cassettes and raw bodies that nobody on this project wrote."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import read
from flakestorm.wire.base import Edit, Said, ToolCall, Wire
from flakestorm.wire.eventstream import encode
from flakestorm.wire.protocols import wire_of

DATA = Path(__file__).parents[2].parent / "shared" / "data"
WIRE_OF_API = {
    "openai.chat": "openai_chat",
    "openai.responses": "openai_responses",
    "anthropic.messages": "anthropic",
    "google.generate": "gemini",
    "bedrock.converse": "bedrock",
    "bedrock.invoke": "bedrock_invoke",
    "embeddings": "embeddings",
}
EVENT_STREAM = "application/vnd.amazon.eventstream"


@dataclass(frozen=True)
class Recorded:
    """One recorded exchange: the request as a call, the reply body, and what the index says it means."""

    id: str
    wire: Wire
    call: Call
    status: int
    stream: bool
    body: bytes
    facts: dict[str, Any] = field(hash=False, default_factory=dict)

    @property
    def reply(self) -> Reply:
        sse = EVENT_STREAM if self.wire.name == "bedrock" else "text/event-stream"
        return Reply(self.status, (("content-type", sse if self.stream else "application/json"),), self.body)

    @property
    def edits(self) -> bool:
        """Whether its wire can change what it says."""
        return self.wire.name not in ("bedrock_invoke", "embeddings", "completions", "interactions")


@cache
def _cassette(path: Path) -> Any:
    return yaml.load(path.read_bytes(), yaml.CSafeLoader)


def _bytes(message: dict[str, Any]) -> bytes:
    """A body as VCR stores it: parsed, text, bytes (perhaps still compressed), or under `string`."""
    if message.get("parsed_body") is not None:
        return json.dumps(message["parsed_body"]).encode()
    body = message.get("body")
    if isinstance(body, dict):
        body = body["string"] if "string" in body else json.dumps(body)
    data = body.encode() if isinstance(body, str) else body or b""
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def recorded_request(row: dict[str, Any]) -> bytes:
    """The request body of one row of the index."""
    return _bytes(_cassette(DATA / row["file"])["interactions"][row["i"]]["request"])


@cache
def cassettes() -> tuple[Recorded, ...]:
    """Every recorded exchange of the index."""
    index = DATA / "wire" / "INDEX.jsonl"
    if not index.exists():
        return ()
    found: list[Recorded] = []
    for row in map(json.loads, index.read_text().splitlines()):
        wire = wire_of(WIRE_OF_API[row["api"]])
        assert wire is not None
        exchange = _cassette(DATA / row["file"])["interactions"][row["i"]]
        request, response = exchange["request"], exchange["response"]
        headers = tuple(
            (key, value if isinstance(value, str) else value[0]) for key, value in request["headers"].items()
        )
        call = Call(request["method"], request["uri"], headers, _bytes(request))
        name = f"{Path(row['file']).parent.name}/{Path(row['file']).stem}#{row['i']}"
        found.append(Recorded(name, wire, call, row["status"], row["stream"], _bytes(response), row.get("facts", {})))
    return tuple(found)


def _is_chat(data: str) -> bool:
    return '"object":"chat.completion' in data.replace(" ", "")


@cache
def fixtures() -> tuple[Recorded, ...]:
    """Raw bodies of vercel/ai: whole replies, and streams that were stored as one payload per line."""
    root = DATA / "wire" / "vercel__ai"
    found: list[Recorded] = []
    for path in sorted(root.rglob("*.json")) + sorted(root.rglob("*.chunks.txt")):
        text = path.read_text()
        lines = [line for line in text.split("\n") if line.strip()]
        streamed = path.name.endswith(".chunks.txt")
        if '"type":"message_start"' in lines[0] or (not streamed and json.loads(text).get("type") == "message"):
            name = "anthropic"
        elif _is_chat(text) and "vertex" not in str(path):
            name = "openai_chat"
        elif '"type":"response.created"' in lines[0] or (not streamed and '"object": "response"' in text):
            name = "openai_responses"
        elif "/amazon-bedrock/src/__fixtures__" in str(path):
            name = "bedrock"
        elif "/interactions/" in str(path):
            name = "interactions"
        elif "/completion/" in str(path) or path.name == "cohere-citations.json":
            name = "completions"
        elif "candidates" in lines[0][:40] or (not streamed and "candidates" in json.loads(text)):
            name = "gemini"
        else:
            continue
        wire = wire_of(name)
        assert wire is not None
        body = b"".join(_framed(line, name) for line in lines) if streamed else text.encode()
        if streamed and name in ("openai_chat", "completions"):
            body += b"data: [DONE]\n\n"
        asked = "models/m:streamGenerateContent?alt=sse" if name == "gemini" and streamed else "chat/completions"
        call = Call("POST", f"https://provider.test/v1/{asked}")
        found.append(Recorded(str(path.relative_to(root / "packages")), wire, call, 200, streamed, body))
    return tuple(found)


def _framed(line: str, wire: str) -> bytes:
    if wire == "bedrock":
        [(kind, payload)] = json.loads(line).items()
        return encode(json.dumps(payload).encode(), {":event-type": kind, ":content-type": "application/json"})
    kind = re.match(r'\{"type": ?"([^"]+)"', line)  # not by parsing: in one recording a line is damaged
    head = f"event: {kind[1]}\n" if kind and wire in ("anthropic", "openai_responses") else ""
    return f"{head}data: {line}\n\n".encode()


def recorded() -> tuple[Recorded, ...]:
    """Both collections."""
    return cassettes() + fixtures()


def sha(text: str) -> str:
    """The first 12 digits of a text's SHA-1, as the index states them."""
    return hashlib.sha1(text.encode()).hexdigest()[:12]


def arguments_sha(arguments: str) -> str:
    """The same for a tool call's arguments, whatever their key order and spacing."""
    try:
        return sha(json.dumps(json.loads(arguments or "{}"), sort_keys=True))
    except ValueError:
        return sha(arguments)


def hostile_json(keys: list[str]) -> st.SearchStrategy[object]:
    """JSON that uses a protocol's own keys for anything but what they are meant for."""
    scalar = st.none() | st.booleans() | st.integers(0, 9) | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        scalar | st.text(max_size=3) | st.sampled_from(keys),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, min_size=1, max_size=4)
        ),
        max_leaves=25,
    )


def chunked(data: bytes, *sizes: int) -> Iterator[bytes]:
    """The bytes in chunks of these sizes, over and over."""
    at = turn = 0
    while at < len(data):
        size = max(1, sizes[turn % len(sizes)])
        yield data[at : at + size]
        at, turn = at + size, turn + 1


Make = Callable[[Call], Reply]
"""Makes the reply to a request."""

EDITS = {
    "untouched": Edit(),
    "cut": Edit(max_tokens=6),
    "cut at once": Edit(max_tokens=0),
    "mapped": Edit(text=str.upper),
    "silent": Edit(text=lambda _: "", drop_tool_calls=True, finish="stop"),
    "refused": Edit(text=lambda _: "I cannot do that.", drop_tool_calls=True, finish="refusal"),
    "filtered": Edit(max_tokens=4, finish="content_filter"),
    "asking otherwise": Edit(calls=lambda call: ToolCall(call.id, f"other_{call.name}", '{"n": 1, "what": "words"}')),
    "breaking off": Edit(calls=lambda call: replace(call, arguments='{"n": 1, "what": "wor')),
}


class Fired:
    """Counts the calls of an edit's `on_change`."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def edit_bytes(wire: Wire, reply: Reply, edit: Edit) -> bytes:
    """What comes out of an edited reply."""
    return read(wire.edit(reply, edit))


def edit_said(wire: Wire, reply: Reply, edit: Edit) -> Said:
    """What an edited reply says."""
    return wire.said(edit_bytes(wire, reply, edit), stream=reply.streamed)
