from __future__ import annotations

import pytest

from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded


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
