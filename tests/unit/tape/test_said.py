"""The digest: what changes it, and what does not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.said import Said, digest


def asked(n: int, lane: str = "", body: bytes = b"q", reply: bytes = b"a", t_ms: float = 0.0) -> Exchange:
    site = Site("tool", "search", n + 1)
    return Exchange(
        site, lane=lane, url="https://x.test/", body=body, reply=Recorded(200, chunks=[reply]), n=n, t_ms=t_ms
    )


def test_the_digest_is_of_what_was_said_and_not_of_when() -> None:
    run = [asked(0, body=b"1"), asked(1, body=b"2")]
    later = [replace(exchange, t_ms=99.0, duration_ms=5.0, headers=(("date", "today"),)) for exchange in run]
    rechunked = [replace(run[0], reply=Recorded(200, chunks=[b"", b"a"])), run[1]]
    assert digest(run, "done") == digest(run[::-1], "done") == digest(later, "done") == digest(rechunked, "done")


def test_the_digest_changes_with_anything_that_was_said() -> None:
    run = [asked(0, body=b"1"), asked(1, body=b"2")]
    others = [
        digest(run, "failed"),
        digest(run[:1], "done"),
        digest([asked(0, body=b"2"), asked(1, body=b"1")], "done"),
        digest([asked(0, body=b"1"), asked(1, body=b"2", reply=b"b")], "done"),
        digest([asked(0, body=b"1q"), asked(1, body=b"2", reply=b"b")], "done"),
        digest([replace(run[0], url="https://y.test/"), run[1]], "done"),
        digest([replace(run[0], lane="2"), run[1]], "done"),
        digest([], "done"),
    ]
    assert len({digest(run, "done"), *others}) == len(others) + 1


def test_lanes_may_interleave_differently() -> None:
    one = [asked(0, "a", b"1"), asked(1, "b", b"2")]
    other = [asked(1, "a", b"1"), asked(0, "b", b"2")]
    assert digest(one, "") == digest(other, "")


def test_lanes_may_have_other_names_and_no_other_calls() -> None:
    one = [asked(0, "a", b"1"), asked(1, "b", b"2"), asked(2, "a", b"3")]
    renamed = [replace(exchange, lane={"a": "b", "b": "a"}[exchange.lane]) for exchange in one]
    moved = [one[0], one[1], replace(one[2], lane="b")]
    apart = [one[0], one[1], replace(one[2], lane="c")]
    assert digest(one, "") == digest(renamed, "")
    assert len({digest(run, "") for run in (one, moved, apart)}) == 3
    assert digest(one, "", form=2) != digest(renamed, "", form=2)


def test_what_is_known_of_an_exchange_need_not_be_worked_out_again() -> None:
    run = [asked(0, body=b"1"), asked(1, body=b"2")]
    plain, told, noted = Said(), Said(), Said()
    each = [plain.add(exchange) for exchange in run]
    assert [told.add(exchange, sha256(exchange.body).digest()) for exchange in run] == each
    for exchange, what in zip(run, each, strict=True):
        noted.note(exchange.lane, exchange.n, what)
    assert plain.total("done") == told.total("done") == noted.total("done") == digest(run, "done")
