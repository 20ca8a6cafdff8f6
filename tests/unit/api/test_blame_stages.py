from contextlib import suppress

import pytest

from flakestorm.api.blame_stages import Mending, Watch, at_first, giving_world
from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import drive
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.tape.model import Exchange, Recorded

MODEL = Call("POST", "http://127.0.0.1:9/v1", kind="llm", name="gpt-4o", site=Site("llm", "gpt-4o", 1))
TOOL = Call("POST", "http://127.0.0.1:9/t", kind="tool", name="search", site=Site("tool", "search", 1))


def watched(call: Call, reply: Reply | Exception) -> str:
    watch = Watch({("tool", "search")})

    def send(_: Call) -> Reply:
        if isinstance(reply, Exception):
            raise reply
        return reply

    with suppress(CallFailed, OSError):
        drive(watch.stage(call), send=send, sleep=lambda _: None)
    return watch.trouble


@pytest.mark.parametrize(
    ("call", "reply", "trouble"),
    [
        (MODEL, Reply(200), False),
        (MODEL, Reply(400), False),
        (MODEL, Reply(401), True),
        (MODEL, Reply(503), True),
        (MODEL, CallFailed("timeout", ""), True),
        (TOOL, Reply(503), False),
        (TOOL, CallFailed("refused", ""), True),
        (TOOL, CallFailed("timeout", ""), False),
        (TOOL, ConnectionRefusedError("Connection refused"), True),
    ],
)
def test_a_world_that_is_not_there_is_told_from_one_that_answers(call: Call, reply: Reply, trouble: bool) -> None:
    assert bool(watched(call, reply)) is trouble


def test_the_world_of_the_tape_is_given_at_its_site() -> None:
    exchange = Exchange(Site("tool", "search", 1), world=Recorded(200, (), "OK", [b"120"]))
    stage = at_first(giving_world(exchange), exchange.site, lambda call: call)
    given = drive(stage(TOOL), send=lambda _: Reply(500), sleep=lambda _: None)
    assert (given.status, given.body) == (200, b"120")
    passed = stage(MODEL)
    assert passed is MODEL


def test_what_cannot_be_tried_at_a_call_is_left_out() -> None:
    bare = Exchange(Site("llm", "gpt-4o", 1))
    assert Mending("other", "think").changes(bare) == {}
    assert Mending().changes(bare) == {}
