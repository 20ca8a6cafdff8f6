"""Matching of requests to a recording: it never raises, no exchange answers twice, and what was recorded is found."""

from __future__ import annotations

from flakestorm.core.site import Site
from flakestorm.tape.fingerprint import Request
from flakestorm.tape.match import MODES, Matcher
from flakestorm.tape.model import Exchange, Recorded
from fuzz.material import Bytes, jsonlike
from fuzz.targets.wires import WORDS

__all__ = ["check"]

_TOKENS = (
    "4a51c9c8-5d1c-4a8f-9a43-8a8ee7f0f001", "0b9b52a4-75a5-44ad-8b0b-9f4b9f6c1002", "2026-11-22T07:36:45Z",
    "1763796999", "call_8hHk2JvX0aQ", "req_011CSHoEeqs5C35K2UUqR7Fy", "[secret:0a1b2c3d]", "127.0.0.1:40001",
)  # fmt: skip
_WORDS = (*WORDS, *_TOKENS)
_HEADERS = ((), (("authorization", "Bearer [secret:0a1b2c3d]"),),
            (("content-type", "multipart/form-data; boundary=x"),),
            (("content-encoding", "gzip"),), (("x-thing", "1"), ("date", "now")))  # fmt: skip


def check(data: bytes) -> None:
    source = Bytes(data)
    mode, count = MODES[source.below(len(MODES))], 1 + source.below(4)
    asked = [_request(source) for _ in range(count)]
    exchanges = [
        Exchange(
            Site("llm", "m", n + 1),
            lane=f"l{n % 2}",
            wire="openai_chat",
            method=one.method,
            url=one.url,
            headers=one.headers,
            body=one.body,
            reply=Recorded(200, (), "OK", [source.take(20)], [0.0]),
            world=None,
            world_body=None,
            sent=1,
            faults=(),
            t_ms=float(n),
            duration_ms=1.0,
            n=n,
            note="",
        )
        for n, one in enumerate(asked)
    ]
    matcher = Matcher(exchanges, mode=mode)
    served: list[int] = []
    for one in asked if source.below(2) else [_request(source) for _ in range(count)]:
        match = matcher.match(Request("llm", "m", *one[2:]), f"l{source.below(3)}")
        if match.outcome in ("exact", "renamed", "tolerated", "reordered"):
            assert match.entry is not None
            served.append(match.entry.n)
            matcher.heard(match.entry.reply.body.decode("utf-8", "replace"))
        elif match.entry is not None:
            list(matcher.hidden(match.entry, Request("llm", "m", *one[2:])))
        assert all(isinstance(detail, str) for detail in match.details)
    assert len(served) == len(set(served))
    assert len(matcher.missing()) <= len(exchanges) - len(served)

    again = Matcher(exchanges, mode=mode)  # what was recorded, in its order, is found whole
    for exchange in exchanges:
        assert again.match(Request.of(exchange), exchange.lane).outcome in ("exact", "renamed", "reordered")
    assert not again.missing()


def _request(source: Bytes) -> Request:
    path = ("/v1/chat", "/a?id=1", "/a?id=4a51c9c8-5d1c-4a8f-9a43-8a8ee7f0f001", "/%5Bsecret%3A0a1b2c3d%5D")
    url = f"https://h.example{path[source.below(4)]}"
    headers = _HEADERS[source.below(len(_HEADERS))]
    body = jsonlike(source, _WORDS) if source.below(3) else source.take(source.byte())
    return Request("llm", "m", "POST", url, headers, body)
