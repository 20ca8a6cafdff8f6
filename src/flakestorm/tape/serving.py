"""A recorded reply, given again: status, headers, reason, the pieces a stream came in, and how it ended."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Literal

import orjson

from flakestorm.core.call import Headers, Reply, header
from flakestorm.core.stream import Pieces
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Recorded

__all__ = ["Renames", "answering", "failure", "served"]

Renames = Callable[[str], list[tuple[int, int, str]]]
"""Where in a text something stands for something else in this run: begin, end and replacement, in order."""

_HOW = re.compile(r"CallFailed: (timeout|reset|refused)(?:: )?(.*)", re.DOTALL)


def served(recorded: Recorded, renames: Renames | None, rpc: Mapping[str, str] | None = None) -> Reply:
    """The reply as it is to be given.

    Args:
        recorded: what the tape says.
        renames: tokens that stand for others in this run; None where there are none.
        rpc: recorded numbers of JSON-RPC messages and those that stand for them.

    Raises:
        CallFailed: the recorded call got no reply.
    """
    if not recorded.status:
        raise failure(recorded)
    chunks = recorded.chunks
    if rpc:
        chunks = _numbered(chunks, rpc)
    if renames is not None:
        chunks = _renamed(chunks, renames)
    headers = recorded.headers
    if chunks is not recorded.chunks:
        headers = _with_length(headers, len(b"".join(recorded.chunks)), len(b"".join(chunks)))
    if recorded.end != "eof":
        return Reply(recorded.status, headers, _Broken(chunks, failure(recorded)), (), recorded.reason)
    body = b"".join(chunks) if len(chunks) < 2 else Pieces(chunks)
    return Reply(recorded.status, headers, body, (), recorded.reason)


def failure(recorded: Recorded) -> CallFailed:
    """How a recorded call broke."""
    said = recorded.error or "the recording ends here: the agent stopped reading"
    found = _HOW.fullmatch(said)
    if found is not None:
        return CallFailed(_how(found[1]), found[2])
    if recorded.end == "client left" and not recorded.status:
        return CallFailed("timeout", "in the recording, the agent left before a reply came")
    low = said.lower()
    how = "timeout" if "timeout" in low or "timed out" in low else "reset"
    if not recorded.status and how == "reset" and ("refused" in low or "connect" in low.partition(":")[0]):
        how = "refused"
    return CallFailed(_how(how), said)


def _how(word: str) -> Literal["timeout", "reset", "refused"]:
    return "timeout" if word == "timeout" else "refused" if word == "refused" else "reset"


class _Broken(Pieces):
    """The same, and then what broke it."""

    __slots__ = ("_failure",)

    def __init__(self, chunks: list[bytes], failure: CallFailed) -> None:
        super().__init__(chunks)
        self._failure = failure

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        raise self._failure


def _renamed(chunks: list[bytes], renames: Renames) -> list[bytes]:
    """The pieces with their tokens renamed; a token that is split between pieces goes to the first of them."""
    body = b"".join(chunks)
    text = body.decode("utf-8", "surrogateescape")
    changes = renames(text)
    if not changes:
        return chunks
    ends = list(accumulate(map(len, chunks)))
    out = [bytearray() for _ in chunks]

    def keep(begin: int, end: int) -> None:
        while begin < end:
            at = bisect_right(ends, begin)
            upto = min(end, ends[at])
            out[at] += body[begin:upto]
            begin = upto

    done = said = 0  # in bytes, and in characters
    for begin, end, new in changes:
        begins = done + len(text[said:begin].encode("utf-8", "surrogateescape"))
        keep(done, begins)
        out[bisect_right(ends, begins)] += new.encode()
        done, said = begins + len(text[begin:end].encode("utf-8", "surrogateescape")), end
    keep(done, len(body))
    return [bytes(piece) for piece in out]


def answering(body: bytes, asked: bytes) -> bytes:
    """A JSON-RPC answer, or a stream with one, with the number of the message that it answers."""
    question = _parsed(asked)
    if not isinstance(question, dict) or "id" not in question or b'"jsonrpc"' not in body:
        return body

    def numbered(data: bytes) -> bytes:
        told = _parsed(data)
        if not isinstance(told, dict) or "id" not in told or "method" in told or told["id"] == question["id"]:
            return data
        return orjson.dumps({**told, "id": question["id"]})

    if _parsed(body) is not None:
        return numbered(body)
    lines = body.splitlines(keepends=True)

    def told(line: bytes) -> bytes:
        if line.startswith(b"data:"):
            return b"data: " + numbered(line[5:].strip()) + b"\n"
        return numbered(line.strip()) + b"\n" if line.startswith(b"{") else line

    return b"".join(map(told, lines))


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _numbered(chunks: list[bytes], rpc: Mapping[str, str]) -> list[bytes]:
    """The same answers, to the numbers of this run; where one is changed, the pieces are lines."""
    body = b"".join(chunks)
    whole = _answer(body, rpc)
    if whole is not None:
        return [whole]
    lines = body.splitlines(keepends=True)
    changed = [_line(line, rpc) for line in lines]
    return chunks if changed == lines else changed


def _line(line: bytes, rpc: Mapping[str, str]) -> bytes:
    prefix = b"data:" if line.startswith(b"data:") else b""
    content = line[len(prefix) :]
    answer = _answer(content, rpc)
    if answer is None:
        return line
    ending = content[len(content.rstrip(b"\r\n")) :]
    return prefix + (b" " if prefix else b"") + answer + ending


def _answer(data: bytes, rpc: Mapping[str, str]) -> bytes | None:
    """A JSON-RPC message with the numbers of this run; None if it is none, or has nothing to change."""
    if b'"jsonrpc"' not in data:
        return None
    try:
        document: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    changed = False
    params = document.get("params")
    places: list[tuple[Any, str]] = [(params, "progressToken")] if isinstance(params, dict) else []
    if "method" not in document:
        places.append((document, "id"))
    for holder, key in places:
        value = holder.get(key)
        new = rpc.get(str(value)) if isinstance(value, (str, int)) else None
        if new is not None:
            holder[key] = int(new) if isinstance(value, int) and new.lstrip("-").isdigit() else new
            changed = True
    return orjson.dumps(document) if changed else None


def _with_length(headers: Headers, before: int, after: int) -> Headers:
    """The headers with the new length, where they said the old one."""
    if before == after or header(headers, "content-length") is None:
        return headers
    return tuple((k, str(after)) if k.lower() == "content-length" else (k, v) for k, v in headers)
