from __future__ import annotations

import pytest

from flakestorm.core.site import Site
from flakestorm.tape.copied import Cache, Text
from flakestorm.tape.model import Exchange, Recorded, repeats


@pytest.mark.parametrize(("chunks", "body"), [([], b""), ([b"one"], b"one"), ([b"one", b"", b" two"], b"one two")])
def test_the_body_is_the_chunks_joined(chunks: list[bytes], body: bytes) -> None:
    assert Recorded(chunks=chunks).body == body


def test_kind_and_name_are_those_of_the_site() -> None:
    exchange = Exchange(Site("mcp", "read_file", 2))
    assert (exchange.kind, exchange.name) == ("mcp", "read_file")


def test_replies_do_not_share_their_chunks() -> None:
    first, second = Exchange(Site("tool", "a", 1)), Exchange(Site("tool", "a", 2))
    first.reply.chunks.append(b"x")
    assert second.reply.chunks == []


def test_what_a_kept_request_repeats_is_known_while_the_one_before_is_there() -> None:
    cache = Cache()
    first = Text(b"0123456789", None, [], cache)
    second = Text(None, first, [(0, 4), b"new"], cache)
    exchange = Exchange(Site("llm", "m", 1))
    for held in (b"0123", first):
        exchange.body = held  # type: ignore[assignment]
        assert repeats(exchange) is None
    exchange.body = second  # type: ignore[assignment]
    body, before, same = repeats(exchange) or (b"", b"", 0)
    assert (body, before, same) == (b"0123new", b"0123456789", 4)
    assert body is exchange.body
    third = Text(None, second, [(0, 5), b"!"], cache)
    exchange.body = third  # type: ignore[assignment]
    assert exchange.body == b"0123n!"
    second.forget()
    assert repeats(exchange) is None
