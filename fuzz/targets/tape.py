"""Tape files from strangers: they read, or are refused as damaged. What is written reads back the same."""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from flakestorm.errors import TapeDamaged
from flakestorm.tape.lines import START, seal
from flakestorm.tape.reader import Tape, describe
from fuzz.material import Bytes

__all__ = ["check"]

WORDS = (
    "n", "site", "tool/search#1", "llm/gpt-4o#1", "mcp/add#2", "lane", "main", "wire", "openai_chat", "anthropic",
    "method", "POST", "url", "https://api.example/v1/chat/completions", "headers", "content-type", "application/json",
    "body", "reply", "status", "reason", "stream", "sizes", "at_ms", "end", "eof", "broken", "client left", "error",
    "world", "world_body", "sent", "faults", "mode", "family", "tool", "llm", "detail", "fault", "t_ms", "duration_ms",
    "note", "like", "as", "but", "0", "of", "parts", "base64", "digest", "output", "stdin", "turns", "input", "text",
    "chunks", "redact", "key", "content-encoding", "gzip", "format",
)  # fmt: skip
_FILE = Path("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp", f"flakestorm-fuzz-{os.getpid()}.tape")  # noqa: PTH112


def check(data: bytes) -> None:
    source = Bytes(data)
    way = source.below(4)
    _FILE.write_bytes(source.rest() if way == 0 else _sealed(source, way))
    try:
        tape = Tape.open(_FILE)
        tape.redactor()
        list(describe(tape)["exchanges"])
        tape.verify()
    except TapeDamaged:
        pass
    finally:
        _FILE.unlink()


def _sealed(source: Bytes, way: int) -> bytes:
    """Lines that are chained as they must be, so that what is in them is looked at."""
    form = 1 + source.below(2)
    lines: list[object] = [{"format": f"flakestorm-tape/{form}", "run": source.text(), "input": source.value(WORDS)}]
    for _ in range(source.below(6)):
        if way == 1:
            lines.append(source.value(WORDS))
        else:
            lines.append(_exchange(source, form))
    if source.below(2):
        lines.append({"digest": source.text(), "output": source.value(WORDS), "error": None, "turns": []})
    previous, made = START, bytearray()
    for content in lines:
        document = content if isinstance(content, dict) else {"n": content}
        try:
            orjson.dumps(document)
        except TypeError:
            document = {"n": 0}
        line, previous = seal(document, previous)
        made += line
    return bytes(made)


def _exchange(source: Bytes, form: int) -> dict[str, object]:
    def reply() -> dict[str, object]:
        body = source.value(WORDS) if source.below(2) else "x" * (source.byte() * 8)
        made: dict[str, object] = {"status": source.byte(), "headers": [], "body": body, "at_ms": [0.0]}
        return {**made, "chunks": [body]} if form == 1 else made

    line: dict[str, object] = {
        "n": source.byte(), "site": "tool/search#1", "lane": "main", "method": "POST", "url": "http://x/",
        "headers": [["a", "b"]], "body": "y" * (source.byte() * 8), "reply": reply(), "t_ms": 0.0, "duration_ms": 1.0,
    }  # fmt: skip
    for _ in range(source.below(5)):
        line[source.word(WORDS)] = source.value(WORDS)
    return line
