import json

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import adrive, chain, drive
from flakestorm.core.site import Site, Sites
from flakestorm.core.stream import read
from flakestorm.errors import CallFailed, Misuse
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.player import MISMATCH, Player
from flakestorm.tape.telling import Telling
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify
from replay_support import URL, chat, exchange, matcher, reply
from tape_support import SAID

HEADERS = (("content-type", "application/json"),)


def call(body: object, **more: object) -> Call:
    return Call("POST", URL, HEADERS, json.dumps(body).encode(), **more)  # type: ignore[arg-type]


def taped(*bodies: object, **more: object):
    said = more.pop("said", None)
    return matcher(*(exchange(n, body, said, headers=HEADERS, **more) for n, body in enumerate(bodies)))  # type: ignore[arg-type]


def live(_: Call) -> Reply:
    return Reply(200, (), b"live")


def nobody(call: Call) -> Reply:
    raise AssertionError(f"{call.url} went out")


def ask(player: Player, *calls: Call, send=nobody) -> list[Reply]:
    stage = chain(classify(tools=(), sites=Sites()), player.stage)
    return [drive(stage(each), send, lambda _: None) for each in calls]


def test_the_tape_answers_in_the_worlds_place() -> None:
    player = Player(taped(chat("hi")))
    (given,) = ask(player, call(chat("hi")))
    assert (given.status, read(given), player.problems, player.missing()) == (200, b"reply 0", [], [])


async def test_under_asyncio_too() -> None:
    player = Player(taped(chat("hi"), said=reply(chunks=[b"a", b"b"], stream=True)))
    stage = chain(classify(tools=(), sites=Sites()), player.stage)

    async def send(call: Call) -> Reply:
        raise AssertionError

    async def sleep(_: float) -> None: ...

    assert read(await adrive(stage(call(chat("hi"))), send, sleep)) == b"ab"


def test_a_diverged_call_gets_an_error_that_says_so_and_is_never_forgotten() -> None:
    player = Player(taped(chat("hi"), chat("then")))
    refused, then = ask(player, call(chat("ho")), call(chat("then")))
    error = json.loads(read(refused))["error"]
    assert (refused.status, error["type"], "llm/gpt-4o#1" in error["message"]) == (400, MISMATCH, True)
    assert read(then) == b"reply 1"
    assert len(player.problems) == 1
    assert "diverged" in player.problems[0]


def test_it_goes_live_only_where_that_was_said_and_tells_all_the_same() -> None:
    player = Player(taped(chat("hi")), allow_live=True)
    assert read(*ask(player, call(chat("ho")), send=live)) == b"live"
    assert len(player.problems) == 1


def test_a_recorded_failure_is_raised_again() -> None:
    said = reply(status=0, chunks=[], end="broken", error="CallFailed: timeout: too late")
    with pytest.raises(CallFailed, match="too late"):
        ask(Player(taped(chat("hi"), said=said)), call(chat("hi")))


def test_up_to_a_site_and_then_something_else() -> None:
    def other(_: Call):
        return Reply(200, (), b"other")
        yield

    tape = [chat("a"), chat("b"), chat("c")]
    player = Player(taped(*tape), until=Site("llm", "gpt-4o", 2), then=other)
    given = ask(player, *(call(body) for body in (*tape[:2], chat("new"), chat("c"))))
    assert [read(each) for each in given] == [b"reply 0", b"other", b"other", b"other"]
    assert (player.forked, player.problems, player.missing()) == (Site("llm", "gpt-4o", 2), [], [])
    forked = Player(taped(*tape), until=Site("llm", "gpt-4o", 1))
    assert read(*ask(forked, call(chat("a")), send=live)) == b"live"
    with pytest.raises(Misuse, match="the tape has no tool/x#1; it has llm/gpt-4o#1"):
        Player(taped(*tape), until=Site("tool", "x", 1))


def test_functions_and_mcp_servers_get_errors_of_their_own() -> None:
    player = Player(taped(chat("hi")))
    function = Call("CALL", "python://tools/search", (), b"{}", kind="tool", name="search")
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "search"}}
    server = Call(
        "CALL", "stdio://server", HEADERS, json.dumps(message).encode(), kind="mcp", name="search", wire="mcp"
    )
    raised, refused = ask(player, function, server)
    assert (raised.status, json.loads(read(raised))["type"]) == (500, "LookupError")
    answer = json.loads(read(refused))
    assert (answer["id"], answer["result"]["isError"]) == (3, True)


def test_a_streamed_upload_is_not_taken_for_anything() -> None:
    player = Player(taped(chat("hi")))
    (given,) = ask(player, call(chat("hi"), upload=object()))
    assert (given.status, len(player.problems)) == (400, 1)


def test_secrets_are_out_before_anything_is_compared() -> None:
    told = Telling().told(Call("POST", "https://u:p@x.test/?api_key=0123456789", (("authorization", "Bearer sk-1"),)))
    assert "sk-1" not in repr(told)
    assert "0123456789" not in repr(told)


def test_a_fault_on_a_replayed_call_leaves_what_the_tape_said_as_the_worlds_word() -> None:
    player = Player(taped({"model": "gpt-4o", "messages": []}, said=reply(json.dumps(SAID))))
    ledger = Ledger()
    recorder = Recorder(None, clock=lambda: 0.0, ledger=ledger, header={})
    schedule = Schedule.injecting(["llm/gpt-4o#1=empty"])
    stages = schedule.stage(Choices(1), ledger, noted=lambda: recorder.exchanges)
    stage = chain(
        classify(tools=(), sites=Sites()), recorder.outer, stages, recorder.heard, player.stage, recorder.inner
    )
    read(drive(stage(call({"model": "gpt-4o", "messages": []})), nobody, lambda _: None))
    recorder.close()
    (exchange_,) = recorder.exchanges
    assert (exchange_.sent, [fault.mode for fault in exchange_.faults]) == (0, ["empty"])
    assert exchange_.world is not None
    assert json.loads(exchange_.world.body) == SAID != json.loads(exchange_.reply.body)


def test_after_a_stray_what_the_tape_does_not_answer_goes_out_or_is_refused_and_is_no_problem() -> None:
    stray = False
    player = Player(taped(chat("hi"), chat("then")), strays=lambda: stray, allow_live=True)
    left: list[int] = []
    player.leave = lambda: left.append(1)
    assert read(*ask(player, call(chat("ho")), send=live)).startswith(b"{")
    assert (len(player.problems), left) == (1, [])
    stray = True
    assert [read(each) for each in ask(player, call(chat("hi")), call(chat("ho")), send=live)] == [b"reply 0", b"live"]
    assert (len(player.problems), left) == (1, [1])
    player = Player(taped(chat("hi")), strays=lambda: True)
    (refused,) = ask(player, call(chat("ho")))
    assert (refused.status, player.problems, len(player.unanswered)) == (400, [], 1)
