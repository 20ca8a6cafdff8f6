import json

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.pipeline import chain, drive
from flakestorm.core.site import Site, Sites
from flakestorm.core.stream import read
from flakestorm.errors import Misuse
from flakestorm.tape.fork import Fork, giving
from flakestorm.tape.player import Player
from flakestorm.wire.classify import classify
from replay_support import URL, chat, exchange, reply

HEADERS = (("content-type", "application/json"),)
SEARCH = "http://search.test/q"
TOOLS = (("search", SEARCH),)


def model(*turns: str) -> Call:
    return Call("POST", URL, HEADERS, json.dumps(chat(*turns)).encode(), lane="1")


def tool(**asked: object) -> Call:
    return Call("POST", SEARCH, HEADERS, json.dumps(asked).encode(), lane="1")


def recorded() -> Fork:
    """A model call, a search, and two more model calls."""
    given = {"headers": HEADERS}
    return Fork(
        [
            exchange(0, chat("hi"), reply("reply 0", at_ms=[1.0]), **given),
            exchange(1, {"to": "Oslo"}, url=SEARCH, wire="", site=Site("tool", "search", 1), **given),
            exchange(2, chat("hi", "a", "b"), site=Site("llm", "gpt-4o", 2), **given),
            exchange(3, chat("hi", "a", "b", "c", "d"), site=Site("llm", "gpt-4o", 3), **given),
        ]
    )


def run(player: Player, *calls: Call) -> tuple[list[bytes], list[str]]:
    """What the calls were answered, and which of them went out."""
    out: list[str] = []

    def send(call: Call) -> Reply:
        out.append(str(call.site))
        return Reply(200, HEADERS, b"live")

    stage = chain(classify(tools=TOOLS, sites=Sites()), player.stage)
    return [read(drive(stage(call), send, lambda _: None)) for call in calls], out


def test_before_the_site_the_tape_answers_and_from_it_on_the_world() -> None:
    player = recorded().player(Site("llm", "gpt-4o", 2))
    said, out = run(player, model("hi"), tool(to="Oslo"), model("hi", "a", "b"), model("hi", "a", "b", "new", "d"))
    assert said == [b"reply 0", b"reply 1", b"live", b"live"]
    assert out == ["llm/gpt-4o#2", "llm/gpt-4o#3"]
    assert (player.changed, player.problems, player.missing()) == (Site("llm", "gpt-4o", 2), [], [])


def test_the_change_has_the_call_of_the_site_and_no_other() -> None:
    fork = recorded()
    site = Site("tool", "search", 1)
    player = fork.player(site, giving(b"none", fork.at(site).reply))
    said, out = run(player, model("hi"), tool(to="Oslo"), model("hi", "a", "none"))
    assert (said, out) == ([b"reply 0", b"none", b"live"], ["llm/gpt-4o#2"])


def test_the_control_is_the_recorded_reply() -> None:
    player = recorded().player(Site("tool", "search", 1), kept=True)
    said, out = run(player, model("hi"), tool(to="Oslo"), model("hi", "a", "b"))
    assert (said, out) == ([b"reply 0", b"reply 1", b"live"], ["llm/gpt-4o#2"])


def test_without_a_site_all_is_played_and_nothing_goes_out() -> None:
    player = recorded().player(None)
    said, out = run(player, model("hi"), tool(to="Oslo"), model("other"))
    assert (said[:2], out, player.forked, len(player.problems)) == ([b"reply 0", b"reply 1"], [], None, 1)


def test_a_run_that_is_another_before_the_site_never_goes_out() -> None:
    player = recorded().player(Site("llm", "gpt-4o", 2))
    _, out = run(player, model("ho"), tool(to="Rome"))
    assert (out, player.changed, len(player.problems)) == ([], None, 2)


def test_pinned_tools_are_answered_by_what_they_are_asked_as_often_as_that_is() -> None:
    player = recorded().player(Site("llm", "gpt-4o", 1), tools="tape")
    said, out = run(player, model("hi"), tool(to="Oslo"), tool(to="Oslo"), tool(to="Rome"))
    assert (said[:3], out) == ([b"live", b"reply 1", b"reply 1"], ["llm/gpt-4o#1"])
    assert b"the tape does not answer this" in said[3]
    assert [str(each.site) for each in player.unanswered] == ["tool/search#3"]


def test_the_clock_is_told_once_that_the_tape_has_ended() -> None:
    player = recorded().player(Site("tool", "search", 1))
    told: list[object] = []
    player.recall = told.append
    player.leave = lambda: told.append("live")
    run(player, model("hi"), tool(to="Oslo"), model("hi", "a", "b"))
    assert told == [1.0, "live"]


def test_an_unknown_site_is_refused_by_name() -> None:
    with pytest.raises(Misuse, match="tool/search#1"):
        recorded().player(Site("tool", "search", 9))


def test_another_reply_keeps_status_headers_and_streaming() -> None:
    head = (("content-type", "text/event-stream"), ("x-kept", "1"), ("content-length", "9"))
    said = reply(headers=head, stream=True, chunks=[b"data: a\n\n"], status=201, reason="Made")
    (given,) = [drive(giving(b"data: x\n\ndata: y\n\n", said)(model("hi")), lambda _: Reply(), lambda _: None)]
    assert (given.status, given.reason) == (201, "Made")
    assert given.headers == (("content-type", "text/event-stream"), ("x-kept", "1"), ("content-length", "18"))
    assert list(given.body) == [b"data: x\n\n", b"data: y\n\n"]  # type: ignore[arg-type]
