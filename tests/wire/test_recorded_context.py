"""Text added to requests that real clients sent: at its place, with every byte of the model's own turns as it was."""

from __future__ import annotations

from typing import Any

import pytest

from flakestorm.wire.context import Addition, added, conversation
from flakestorm.wire.splice import elements
from wire_support import DATA, Recorded, cassettes

NEW = 'new "words" è\n'
WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini")
REQUESTS = [one for one in cassettes() if one.wire.name in WIRES and one.call.body.startswith(b"{")]
HELD = {"openai_responses": ("input",), "gemini": ("contents",)}

pytestmark = pytest.mark.skipif(not REQUESTS, reason=f"there are no recordings in {DATA}")


def raw(one: Recorded, body: bytes) -> list[bytes]:
    """The messages of a request, as bytes."""
    try:
        return [body[a:b] for a, b in elements(body, HELD.get(one.wire.name, ("messages",)))]
    except LookupError:  # the whole prompt is one string, or the request is of another form
        return []


def turns(one: Recorded, body: bytes) -> list[Any]:
    return list(one.wire.asked(body).turns)


@pytest.mark.parametrize("strategy", ["append", "prepend", "replace"])
def test_the_newest_message_takes_it_and_no_other_is_touched(strategy: Any) -> None:
    met = 0
    for one in REQUESTS:
        body = one.call.body
        talk = conversation(one.wire.name, body)
        if talk is None or talk.newest is None:
            continue
        met += 1
        after = added(one.wire.name, body, [Addition(NEW, talk.newest.key, strategy)])
        before, now = raw(one, body), raw(one, after)
        index = talk.newest.index
        if talk.newest.role == "tool":
            assert (now[: index + 1], now[index + 2 :]) == (before[: index + 1], before[index + 1 :]), one.id
        elif index >= 0:
            assert (now[:index], now[index + 1 :]) == (before[:index], before[index + 1 :]), one.id
        said = "".join(turn.text for turn in turns(one, after))
        assert said.count(NEW) == 1, one.id
        assert len(turns(one, after)) - len(turns(one, body)) == (talk.newest.role == "tool"), one.id
        again = conversation(one.wire.name, body)
        assert again == talk
    assert met > 150, "so the recordings are really read"


def test_the_system_prompt_takes_it_and_no_other_message_is_touched() -> None:
    met = made = 0
    for one in REQUESTS:
        body = one.call.body
        talk = conversation(one.wire.name, body)
        if talk is None or not talk.messages:
            continue
        after = added(one.wire.name, body, [Addition(NEW, None, "append")])
        now = conversation(one.wire.name, after)
        assert now is not None
        assert now.messages == talk.messages, one.id
        assert now.system == (f"{talk.system}\n\n{NEW}" if talk.system else NEW), one.id
        spoken = [turn for turn in turns(one, body) if turn.role not in ("system", "developer")]
        assert [turn for turn in turns(one, after) if turn.role not in ("system", "developer")] == spoken, one.id
        met, made = met + 1, made + (not talk.system)
    assert met > 150
    assert 0 < made < met, "with and without a system prompt of their own"
