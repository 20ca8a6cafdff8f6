from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import World, llm_call, staged, stream, tool_call, tool_error
from flakestorm.config.model import LlmFault, ToolFault
from flakestorm.core.call import Call, Reply, Sleep
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import drive
from flakestorm.core.site import Kind, Site
from flakestorm.core.stream import pump
from flakestorm.errors import CallFailed, StageError
from flakestorm.faults.planned import Planned
from flakestorm.faults.staging import matcher


def call(kind: Kind, name: str, url: str = "https://x.test/a?b=1", n: int = 1) -> Call:
    return Call("POST", url, kind=kind, name=name, site=Site(kind, name, n))


@pytest.mark.parametrize(
    ("spec", "matched"),
    [
        (tool_error(), {"tool", "mcp", "http"}),
        (tool_error(tool="search"), {"tool"}),
        (tool_error(tool="se*"), {"tool"}),
        (tool_error(tool="SEARCH"), set()),
        (tool_error(tool="read_*"), {"mcp"}),
        (tool_error(tool="x.test"), set()),  # a host is not a tool's name
        (tool_error(match_url="https://x.test/*"), {"tool", "mcp", "http"}),
        (tool_error(match_url="https://x.test/a"), {"tool", "mcp", "http"}),  # without the query
        (tool_error(match_url="x.test/a?b=1"), {"tool", "mcp", "http"}),
        (tool_error(match_url="https://y.test/*"), set()),
        (tool_error(tool="search", match_url="https://x.test/*"), {"tool", "http"}),
        (tool_error(site="http/x.test#1"), {"http"}),
        (tool_error(site="tool/search#1"), {"tool"}),
        (tool_error(site="tool/search#2"), set()),
        (tool_error(site="mcp/read_file#1", tool="search"), set()),
        (LlmFault(mode="timeout"), {"llm"}),
        (LlmFault(mode="timeout", model="gpt-4*"), {"llm"}),
        (LlmFault(mode="timeout", model="claude*"), set()),
        (LlmFault(mode="timeout", match_url="*/a"), {"llm"}),
        (LlmFault(mode="timeout", match_url="*/b"), set()),
        (LlmFault(mode="timeout", site="llm/gpt-4o#1"), {"llm"}),
        (LlmFault(mode="timeout", site="llm/gpt-4o#2"), set()),
    ],
    ids=lambda value: str(value.given()) if not isinstance(value, set) else "",
)
def test_a_fault_is_for_the_calls_its_filter_names(spec: ToolFault | LlmFault, matched: set[str]) -> None:
    matches = matcher(Planned(0, "llm" if isinstance(spec, LlmFault) else "tool", spec))
    calls = [
        call("tool", "search"),
        call("mcp", "read_file"),
        call("http", "x.test"),
        call("llm", "gpt-4o"),
        call("agent", "agent"),
        call("draw", "uuid"),
    ]
    assert {c.kind for c in calls if matches(c)} == matched


def test_the_agents_input_and_its_draws_are_never_touched() -> None:
    stage, ledger = staged(tool_error(), LlmFault(mode="timeout"))
    world = World()
    for kind in ("agent", "draw"):
        assert world.cross(stage, call(kind, "x")) is world.answer  # type: ignore[arg-type]
    assert (ledger.fired, ledger.matched) == ([], {})


@pytest.mark.parametrize(
    ("triggers", "fires"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"calls": [1, 3]}, [1, 3]),
        ({"after_calls": 2}, [3, 4, 5]),
        ({"after_calls": 0}, [1, 2, 3, 4, 5]),
        ({"times": 2}, [1, 2]),
        ({"after_calls": 1, "times": 2}, [2, 3]),
        ({"calls": [1, 4], "after_calls": 2}, [4]),
        ({"probability": 0.0}, []),
        ({"probability": 1.0, "times": 1}, [1]),
        ({"calls": []}, []),
    ],
)
def test_triggers_combine(triggers: dict[str, object], fires: list[int]) -> None:
    stage, ledger = staged(tool_error(tool="search", **triggers))
    world = World()
    statuses = {}
    for n in range(1, 6):
        world.cross(stage, tool_call("other", n))  # calls of other tools are not counted
        statuses[n] = world.cross(stage, tool_call("search", n)).status
    assert [n for n, status in statuses.items() if status == 503] == fires
    assert [firing.site.occurrence for firing in ledger.fired] == fires
    assert all(firing.detail == "503 Service Unavailable" for firing in ledger.fired)


def test_probability_is_drawn_per_site_and_fault_and_not_from_shared_state() -> None:
    names = [f"t{i}" for i in range(200)]

    def hit(order: list[str], seed: int = 1) -> set[str]:
        stage, ledger = staged(tool_error(probability=0.3), seed=seed)
        for name in order:
            World().cross(stage, tool_call(name))
        return {firing.site.name for firing in ledger.fired}

    assert hit(names) == hit(names[::-1])
    assert hit(names) != hit(names, seed=2)
    assert 30 <= len(hit(names)) <= 90
    stage, ledger = staged(tool_error(probability=0.5, tool="t*"), tool_error(probability=0.5, tool="t*"))
    for name in names:
        World().cross(stage, tool_call(name))
    by_fault = [{f.site.name for f in (*ledger.fired, *ledger.masked) if f.fault == index} for index in (0, 1)]
    assert by_fault[0] != by_fault[1]


def test_the_same_seed_gives_the_same_faults_under_any_concurrency() -> None:
    calls = [tool_call(f"t{i}", n) for i in range(20) for n in range(1, 6)]

    def fired(workers: int) -> set[str]:
        stage, ledger = staged(tool_error(probability=0.4))
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda c: World().cross(stage, c), calls))
        return {str(firing.site) for firing in ledger.fired}

    assert fired(1) == fired(8)


def test_concurrent_calls_cannot_take_one_turn_twice() -> None:
    stage, ledger = staged(ToolFault(mode="slow", delay_ms=1, times=3))
    barrier = threading.Barrier(8)

    def one(n: int) -> None:
        barrier.wait(timeout=10)
        World().cross(stage, tool_call("search", n))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(1, 9)))
    assert len(ledger.fired) == 3


def test_a_turn_is_given_back_by_a_fault_that_found_nothing_to_change() -> None:
    stage, ledger = staged(ToolFault(mode="malformed", times=1))
    World(Reply(204)).read(stage, tool_call(n=1))
    assert ledger.fired == []
    World().read(stage, tool_call(n=2))
    World().read(stage, tool_call(n=3))
    assert [firing.site.occurrence for firing in ledger.fired] == [2]


def test_a_turn_is_given_back_when_the_world_failed_first() -> None:
    stage, ledger = staged(ToolFault(mode="malformed", times=1))
    with pytest.raises(CallFailed):
        World(CallFailed("refused", "nobody listens")).cross(stage, tool_call(n=1))
    World().read(stage, tool_call(n=2))
    assert [firing.site.occurrence for firing in ledger.fired] == [2]
    assert ledger.masked == []


def test_the_first_listed_fault_is_outermost() -> None:
    stage, ledger = staged(
        ToolFault(mode="slow", delay_ms=100), tool_error(error_code=500), ToolFault(mode="malformed")
    )
    world = World()
    reply, _ = world.read(stage, tool_call())
    assert (reply.status, world.slept, world.asked) == (500, [0.1], [])
    assert [(f.mode, f.fault) for f in ledger.fired] == [("slow", 0), ("error", 1)]
    assert [(f.mode, f.fault, f.detail) for f in ledger.masked] == [("malformed", 2, "masked by slow, error")]


def test_faults_around_one_another_both_take_effect() -> None:
    stage, ledger = staged(ToolFault(mode="malformed"), tool_error())
    _, body = World().read(stage, tool_call())
    assert body.startswith(b'{"error"')
    assert {f.mode for f in ledger.fired} == {"error", "malformed"}
    assert ledger.masked == []


def test_a_fault_with_nothing_left_to_change_is_masked_by_the_one_that_answered() -> None:
    cut, limit = LlmFault(mode="truncated_response", times=1), LlmFault(mode="rate_limit", calls=[1])
    stage, ledger = staged(cut, limit)
    World().read(stage, llm_call(n=1))
    assert [f.mode for f in ledger.fired] == ["rate_limit"]
    assert [(f.mode, f.detail) for f in ledger.masked] == [("truncated_response", "masked by rate_limit")]


def test_a_fault_that_merely_had_nothing_to_do_is_not_masked() -> None:
    stage, ledger = staged(ToolFault(mode="slow", delay_ms=1), ToolFault(mode="malformed"))
    World(Reply(204)).read(stage, tool_call())
    assert [f.mode for f in ledger.fired] == ["slow"]
    assert ledger.masked == []


def test_an_agent_that_leaves_while_it_waits_masks_what_was_to_come() -> None:
    stage, ledger = staged(ToolFault(mode="slow"), tool_error())
    flow = stage(tool_call())
    assert isinstance(next(flow), Sleep)
    flow.close()
    assert [f.mode for f in ledger.fired] == ["slow"]
    assert [f.mode for f in ledger.masked] == ["error"]


def test_an_agent_that_stops_reading_settles_the_fault() -> None:
    stage, ledger = staged(ToolFault(mode="malformed", times=1))
    reply = drive(stage(tool_call(n=1)), lambda _: stream(b"data: 1\n\n", b'data: {"a": 1}\n\n'), lambda _: None)
    with closing(pump(reply, lambda _: None)) as chunks:  # type: ignore[type-var]
        next(chunks)  # type: ignore[call-overload]
    assert ledger.fired == []
    World().read(stage, tool_call(n=2))
    assert [firing.site.occurrence for firing in ledger.fired] == [2]


def test_one_fault_fires_once_at_one_site() -> None:
    stage, ledger = staged(ToolFault(mode="malformed"))
    World(stream(b"data: {}\n\n", b"data: {}\n\n")).read(stage, tool_call())
    assert len(ledger.fired) == 1


def test_outside_of_classify_the_stage_says_so() -> None:
    stage, _ = staged(tool_error())
    with pytest.raises(StageError, match="inside the classify stage"):
        World().cross(stage, Call("GET", "https://x.test/", kind="tool", name="search"))


@given(
    chosen=st.lists(st.sampled_from(["error", "malformed", "slow", "malicious_response"]), min_size=1, max_size=5),
    probability=st.floats(0, 1),
)
def test_at_each_site_every_fault_that_is_due_fires_or_is_masked(chosen: list[str], probability: float) -> None:
    stage, ledger = staged(*(ToolFault(mode=mode, delay_ms=0, probability=probability) for mode in chosen))
    world = World()
    for n in range(1, 4):
        world.read(stage, tool_call(n=n))
    choices = Choices(1, "scenario", 0, 1)
    due = {
        (index, n)
        for index in range(len(chosen))
        for n in range(1, 4)
        if choices.uniform("fault", index, Site("tool", "search", n), "fires") < probability
    }
    outcome = [(f.fault, f.site.occurrence) for f in (*ledger.fired, *ledger.masked)]
    assert sorted(outcome) == sorted(due)


@pytest.mark.parametrize(
    ("spec", "hit"),
    [
        (ToolFault(mode="error"), {"search", "resources/read"}),
        (ToolFault(mode="error", tool="s*"), {"search"}),
        (ToolFault(mode="error", tool="*/*"), {"resources/read"}),
        (ToolFault(mode="error", tool="tools/list"), {"tools/list"}),
        (ToolFault(mode="error", site="mcp/initialize#1"), {"initialize"}),
        (ToolFault(mode="tool_poisoning"), {"tools/list"}),
        (ToolFault(mode="tool_poisoning", tool="search"), {"tools/list"}),
        (ToolFault(mode="tool_poisoning", match_url="https://y.test/*"), set()),
        (ToolFault(mode="tool_poisoning", site="mcp/tools/list#2"), set()),
    ],
    ids=lambda value: str(value.given()) if isinstance(value, ToolFault) else "",
)
def test_a_glob_means_what_an_mcp_server_does_and_not_its_housekeeping(spec: ToolFault, hit: set[str]) -> None:
    matches = matcher(Planned(0, "tool", spec))
    methods = {"search": "tools/call", "server/discover": "server/discover"} | {
        name: name for name in ("resources/read", "tools/list", "initialize", "notifications/initialized", "ping")
    }
    calls = [
        replace(call("mcp", name), body=f'{{"jsonrpc":"2.0","id":1,"method":"{method}"}}'.encode())
        for name, method in methods.items()
    ]
    assert {c.name for c in calls if matches(c)} == hit
