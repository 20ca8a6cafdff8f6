"""Functions that are tools: each call crosses once, comes back unharmed, and breaks as functions break."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flakestorm.boundary.seams.functions import hold
from flakestorm.boundary.session import Crossing
from flakestorm.config.model import ToolFault
from flakestorm.core.call import Call, Reply, Sleep
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.site import Sites
from flakestorm.errors import CallFailed, Misuse
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify
from inprocess_support import Watcher


def line(*stages: Interceptor) -> Crossing:
    return Crossing("r-0001", chain(*stages))


def faulted(**fault: Any) -> Crossing:
    """A line with this tool fault, staged as a run stages it."""
    ledger = Ledger()
    schedule = Schedule.of(_Chaos([ToolFault(**fault)]))  # type: ignore[arg-type]  # all that a chaos block is asked for
    return line(classify(tools=(), sites=Sites()), schedule.stage(Choices(1), ledger))


class _Chaos:
    def __init__(self, faults: list[ToolFault]) -> None:
        self.tool_faults, self.llm_faults, self.context_attacks = faults, [], []


class Kind:
    """A tool in one of the forms people write them in: how it is made, and how it is called."""

    def __init__(self, make: Callable[[list[Any]], Callable[..., Any]], *, is_async: bool = False) -> None:
        self.make, self.is_async = make, is_async

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self.is_async:
            return function(*args, **kwargs)

        async def go() -> Any:
            return await function(*args, **kwargs)

        return asyncio.run(go())


def _sync(ran: list[Any]) -> Callable[..., Any]:
    def search(to: str, limit: int = 3) -> dict[str, Any]:
        ran.append(to)
        if to == "Atlantis":
            raise ValueError("no such city")
        return {"to": to, "flights": limit}

    return search


def _async(ran: list[Any]) -> Callable[..., Any]:
    inner = _sync(ran)

    async def search(to: str, limit: int = 3) -> dict[str, Any]:
        await asyncio.sleep(0)
        return inner(to, limit)

    return search


def _method(ran: list[Any]) -> Callable[..., Any]:
    class Desk:
        def __init__(self) -> None:
            self.inner = _sync(ran)

        def search(self, to: str, limit: int = 3) -> Any:
            return self.inner(to, limit)

    return Desk().search


def _callable(ran: list[Any]) -> Callable[..., Any]:
    class Search:
        inner = staticmethod(_sync(ran))

        def __call__(self, to: str, limit: int = 3) -> Any:
            return self.inner(to, limit)

    return Search()


def _partial(ran: list[Any]) -> Callable[..., Any]:
    return functools.partial(_sync(ran))


def _decorated(ran: list[Any]) -> Callable[..., Any]:
    inner = _sync(ran)

    @functools.wraps(inner)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    return traced


def _decorated_async(ran: list[Any]) -> Callable[..., Any]:
    """A decorator that is not async around a function that is."""
    inner = _async(ran)

    @functools.wraps(inner)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    return traced


def _made_blocking(ran: list[Any]) -> Callable[..., Any]:
    """An async function behind a decorator that waits for it."""
    inner = _async(ran)

    @functools.wraps(inner)
    def blocking(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(inner(*args, **kwargs))

    return blocking


KINDS = {
    "function": Kind(_sync),
    "coroutine function": Kind(_async, is_async=True),
    "method": Kind(_method),
    "callable object": Kind(_callable),
    "partial": Kind(_partial),
    "decorated": Kind(_decorated),
    "decorated coroutine function": Kind(_decorated_async, is_async=True),
    "coroutine function made blocking": Kind(_made_blocking),
}


class Tool:
    def __init__(self, kind: Kind) -> None:
        self.ran: list[Any] = []
        self.kind, self.made = kind, kind.make(self.ran)
        self.held = hold("search", self.made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kind.call(self.held.function, *args, **kwargs)


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def tool(request: pytest.FixtureRequest) -> Iterator[Tool]:
    tool = Tool(request.param)
    yield tool
    tool.held.release()


class TestEveryKind:
    def test_without_a_line_nothing_changes(self, tool: Tool) -> None:
        assert tool("Oslo") == {"to": "Oslo", "flights": 3}

    def test_a_call_crosses_as_a_tool(self, tool: Tool) -> None:
        watcher = Watcher()
        with line(watcher).active():
            assert tool("Oslo", limit=5) == {"to": "Oslo", "flights": 5}
        (call,) = watcher.calls
        assert (call.kind, call.name, call.method, call.url) == ("tool", "search", "CALL", "python://search")
        assert json.loads(call.body) == {"to": "Oslo", "limit": 5}
        assert (watcher.statuses, json.loads(watcher.bodies[0])) == ([200], {"to": "Oslo", "flights": 5})
        assert (watcher.ends, tool.ran) == (["eof"], ["Oslo"])

    def test_its_own_exception_is_the_very_same(self, tool: Tool) -> None:
        watcher = Watcher()
        with line(watcher).active(), pytest.raises(ValueError, match="no such city"):
            tool("Atlantis")
        assert watcher.statuses == [500]
        assert json.loads(watcher.bodies[0]) == {"error": "no such city", "type": "ValueError"}

    def test_an_error_lets_nothing_through(self, tool: Tool) -> None:
        said = pytest.raises(RuntimeError, match=r"^503 Service Unavailable$")
        with faulted(tool="search", mode="error").active(), said:
            tool("Oslo")
        assert tool.ran == []

    def test_a_timeout_is_one(self, tool: Tool) -> None:
        with faulted(tool="search", mode="timeout", delay_ms=0).active(), pytest.raises(TimeoutError, match="search"):
            tool("Oslo")
        assert tool.ran == []

    def test_a_hostile_result_takes_the_place_of_its_own(self, tool: Tool) -> None:
        with faulted(tool="search", mode="malicious_response", payload="Pay me").active():
            assert tool("Oslo") == "Pay me"
        assert tool.ran == ["Oslo"]

    def test_a_malformed_result_is_broken_text(self, tool: Tool) -> None:
        with faulted(tool="search", mode="malformed").active():
            said = tool("Oslo")
        assert isinstance(said, str)
        with pytest.raises(ValueError):
            json.loads(said)

    def test_a_fault_of_another_tool_leaves_it_alone(self, tool: Tool) -> None:
        with faulted(tool="book", mode="error").active():
            assert tool("Oslo") == {"to": "Oslo", "flights": 3}

    def test_changed_arguments_reach_the_function(self, tool: Tool) -> None:
        def elsewhere(call: Call) -> Flow:
            body = call.body.replace(b"Oslo", b"Rome")
            return (yield _with_body(call, body))  # type: ignore[return-value]  # a driver sends replies

        with line(elsewhere).active():
            assert tool("Oslo") == {"to": "Rome", "flights": 3}
        assert tool.ran == ["Rome"]

    def test_let_go_of_it_is_what_it_was(self, tool: Tool) -> None:
        tool.held.release()
        tool.held.release()
        watcher = Watcher()
        with line(watcher).active():
            assert tool.kind.call(tool.made, "Oslo") == {"to": "Oslo", "flights": 3}
        assert watcher.calls == []


def _with_body(call: Call, body: bytes) -> Call:
    from dataclasses import replace

    return replace(call, body=body)


def test_whoever_took_the_function_in_earlier_calls_the_tool_too() -> None:
    function = _sync([])
    taken_in = [function, functools.partial(function, "Oslo")]
    watcher, held = Watcher(), hold("search", function)
    with line(watcher).active():
        taken_in[0]("Oslo")
        taken_in[1]()
    held.release()
    assert len(watcher.calls) == 2


def test_values_pass_by_identity_when_nothing_changes_them() -> None:
    value = object()
    held = hold("get", _returning(value))
    with line(Watcher()).active():
        assert held.function() is value
    held.release()


def _returning(value: object) -> Callable[[], object]:
    def get() -> object:
        return value

    return get


def test_a_reset_and_a_refusal_are_what_sockets_raise() -> None:
    def failing(how: Any) -> Interceptor:
        def stage(call: Call) -> Flow:
            raise CallFailed(how, "gone", injected=True)
            yield call

        return stage

    held = hold("get", _returning(1))
    for how, kind in (("reset", ConnectionResetError), ("refused", ConnectionRefusedError)):
        with line(failing(how)).active(), pytest.raises(kind, match="get: gone"):
            held.function()
    held.release()


def test_a_tool_asked_twice_gives_what_it_said_last() -> None:
    count = iter(range(9))

    def twice(call: Call) -> Flow:
        yield call
        return (yield call)  # type: ignore[return-value]  # a driver sends replies

    def number() -> int:
        return next(count)

    held = hold("number", number)
    with line(twice).active():
        assert number() == 1
    held.release()


def test_delays_pass_where_the_tool_is_called() -> None:
    def slow(call: Call) -> Flow:
        yield Sleep(0)
        return (yield call)  # type: ignore[return-value]  # a driver sends replies

    held = hold("get", _returning(1))
    with line(slow).active():
        assert held.function() == 1
    held.release()


def test_a_pair_says_its_first_only() -> None:
    def lookup(q: str) -> tuple[str, object]:
        return f"found {q}", q

    watcher, held = Watcher(), hold("lookup", lookup, pairs=True)
    with line(watcher).active():
        assert lookup("x") == ("found x", "x")
    assert watcher.bodies == [b"found x"]
    with faulted(tool="lookup", mode="malicious_response", payload="Pay me").active():
        assert lookup("x") == ("Pay me", "x")
    held.release()


def test_what_a_tool_calls_of_itself_is_its_own_affair() -> None:
    def walk(depth: int) -> int:
        return 0 if depth == 0 else 1 + walk(depth - 1)

    async def awalk(depth: int) -> int:
        return 0 if depth == 0 else 1 + await awalk(depth - 1)

    watcher, held = Watcher(), [hold("walk", walk), hold("awalk", awalk)]
    with line(watcher).active():
        assert walk(3) == 3
        assert asyncio.run(awalk(3)) == 3
    for each in held:
        each.release()
    assert [call.name for call in watcher.calls] == ["walk", "awalk"]


def test_the_other_function_of_the_same_tool_is_no_second_call() -> None:
    def search(to: str) -> str:
        return to

    async def asearch(to: str) -> str:
        return await asyncio.to_thread(search, to)

    watcher, held = Watcher(), [hold("search", search), hold("search", asearch)]
    with line(watcher).active():
        assert asyncio.run(asearch("Oslo")) == "Oslo"
        assert search("Rome") == "Rome"
    for each in held:
        each.release()
    assert [json.loads(call.body) for call in watcher.calls] == [{"to": "Oslo"}, {"to": "Rome"}]


def test_a_tool_that_asks_an_agent_that_uses_the_tool_again() -> None:
    """By way of other code, a call of the same tool is a call of its own."""
    agent: list[Callable[[int], int]] = []

    def delegate(left: int) -> int:
        return agent[0](left)

    def think(left: int) -> int:
        return _model(left)

    def _model(left: int) -> int:
        return delegate(left - 1) if left else 0

    agent.append(think)
    watcher, held = Watcher(), hold("delegate", delegate)
    with line(watcher).active():
        delegate(2)
    held.release()
    assert [json.loads(call.body) for call in watcher.calls] == [{"left": 2}, {"left": 1}, {"left": 0}]


def test_other_tools_within_a_tool_cross_as_they_always_do() -> None:
    def price(q: str) -> int:
        return len(q)

    def quote(q: str) -> int:
        return price(q) * 2

    watcher, held = Watcher(), [hold("price", price), hold("quote", quote)]
    with line(watcher).active():
        assert quote("ab") == 4
    for each in held:
        each.release()
    assert [call.name for call in watcher.calls] == ["quote", "price"]


def test_a_method_is_held_for_its_own_object_only() -> None:
    class Desk:
        def search(self, to: str) -> str:
            return to

    mine, other = Desk(), Desk()
    watcher, held = Watcher(), hold("search", mine.search)
    with line(watcher).active():
        assert (mine.search("a"), other.search("b"), Desk.search(mine, "c")) == ("a", "b", "c")
    held.release()
    assert [json.loads(call.body)["to"] for call in watcher.calls] == ["a", "c"]


def test_holding_twice_is_once_and_lasts_until_the_last_lets_go() -> None:
    function, watcher = _sync([]), Watcher()
    code = function.__code__
    first, second = hold("search", function), hold("search", function)
    first.release()
    with line(watcher).active():
        function("Oslo")
    assert len(watcher.calls) == 1
    second.release()
    assert function.__code__ is code


def test_one_function_cannot_be_two_tools() -> None:
    function = _sync([])
    held = hold("search", function)
    with pytest.raises(Misuse, match="is the tool 'search' already and cannot be 'find'"):
        hold("find", function)
    held.release()


def test_cancelling_a_run_leaves_its_tool() -> None:
    watcher = Watcher()

    async def wait() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        with line(watcher).active():
            task = asyncio.create_task(wait())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    held = hold("wait", wait)
    asyncio.run(main())
    held.release()
    assert [type(error) for error in watcher.failures] == [asyncio.CancelledError]


def test_concurrent_runs_do_not_mix() -> None:
    function = _sync([])
    held, together = hold("search", function), threading.Barrier(8)
    watchers = [Watcher() for _ in range(8)]

    def run(n: int) -> None:
        with line(watchers[n]).active():
            for _ in range(20):
                together.wait()
                assert function(str(n))["to"] == str(n)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held.release()
    assert [[json.loads(call.body)["to"] for call in w.calls] for w in watchers] == [[str(n)] * 20 for n in range(8)]


def test_on_a_tape_a_tool_keeps_what_it_said_and_what_the_agent_saw() -> None:
    ledger, sites = Ledger(), Sites()
    recorder = Recorder(None, clock=lambda: 0.0, ledger=ledger, header={})
    schedule = Schedule.of(_Chaos([ToolFault(tool="search", mode="malicious_response", payload="Pay me", calls=[2])]))  # type: ignore[arg-type]
    crossing = line(classify(tools=(), sites=sites), recorder.outer, schedule.stage(Choices(1), ledger), recorder.inner)
    function = _sync([])
    held = hold("search", function)
    with crossing.active():
        function("Oslo")
        function("Rome")
    held.release()
    first, second = recorder.exchanges
    assert (str(first.site), first.world, first.sent, first.lane) == ("tool/search#1", None, 1, "1")
    assert (str(second.site), second.reply.body) == ("tool/search#2", b'"Pay me"')
    assert second.world is not None
    assert json.loads(second.world.body) == {"to": "Rome", "flights": 3}
    assert [f.mode for f in second.faults] == ["malicious_response"]


def test_a_reply_from_elsewhere_is_a_value(tool: Tool) -> None:
    def played(call: Call) -> Flow:
        return Reply(200, (("content-type", "application/json"),), b'{"to":"tape"}')
        yield call

    with line(played).active():
        assert tool("Oslo") == {"to": "tape"}
    assert tool.ran == []


def test_frameworks_that_look_see_the_same_function() -> None:
    function = _async([])
    before = inspect.signature(function)
    held = hold("search", function)
    assert (inspect.signature(function), inspect.iscoroutinefunction(function)) == (before, True)
    held.release()
