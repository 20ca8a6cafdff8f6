"""Results of one run, met and broken: a scripted conversation stands in for an agent, and no time passes."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from faults_support import JSON, World, llm_call, staged, tool_call, tool_error
from flakestorm.config.model import Chaos, LlmFault, ToolFault
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Flow, Interceptor, chain
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.faults.base import inward
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.model import Exchange, Recorded

OUTAGE = "Error: 503 Service Unavailable"


def request(*results: tuple[str, str, str]) -> bytes:
    """A chat request that holds these results: (call id, tool, text)."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    for call_id, name, text in results:
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
    return json.dumps({"model": "gpt-4o", "messages": messages}).encode()


def told(world: World, stage: Interceptor, *results: tuple[str, str, str], n: int = 1) -> list[str]:
    """What the model is told when the agent sends these results."""
    world.read(stage, llm_call(n=n, body=request(*results)))
    body = json.loads(world.asked[-1].body)
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def sites(ledger: Ledger) -> list[str]:
    return [str(firing.site) for firing in ledger.fired]


def test_each_result_is_met_once_and_says_the_same_from_then_on() -> None:
    stage, ledger = staged(tool_error(tool="search", calls=[2]))
    world = World()
    one, two, three = ("c1", "search", "1"), ("c2", "search", "2"), ("c3", "search", "3")
    assert told(world, stage, one, n=1) == ["1"]
    assert told(world, stage, one, two, n=2) == ["1", OUTAGE]
    assert told(world, stage, one, two, three, n=3) == ["1", OUTAGE, "3"]
    assert told(world, stage, two, three, n=4) == [OUTAGE, "3"], "also when the agent forgets the beginning"
    assert sites(ledger) == ["tool/search#2"]
    assert ledger.fired[0].via == Site("llm", "gpt-4o", 2)


@pytest.mark.parametrize(
    ("triggers", "fires"),
    [
        ({}, [1, 2, 3, 4]),
        ({"calls": [1, 3]}, [1, 3]),
        ({"after_calls": 2}, [3, 4]),
        ({"times": 2}, [1, 2]),
        ({"probability": 0.0}, []),
        ({"site": "tool/search#3"}, [3]),
        ({"site": "mcp/search#3"}, []),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_triggers_count_results_in_conversation_order(
    triggers: dict[str, object], fires: list[int], at_once: bool
) -> None:
    stage, ledger = staged(tool_error(tool="search", **triggers))
    conversation = [("c1", "search", "x"), ("c9", "pay", "x"), *((f"c{n}", "search", "x") for n in (2, 3, 4))]
    world = World()
    if not at_once:
        for end in range(1, len(conversation)):
            told(world, stage, *conversation[:end], n=end)
    heard = told(world, stage, *conversation, n=9)
    assert [n for n, text in zip((1, 0, 2, 3, 4), heard, strict=True) if text == OUTAGE] == fires
    assert [firing.site.occurrence for firing in ledger.fired] == fires


def test_the_draw_of_a_result_is_that_of_its_site() -> None:
    def fired(order: list[str]) -> set[str]:
        stage, ledger = staged(tool_error(probability=0.4))
        for n, name in enumerate(order, 1):
            told(World(), stage, (f"c-{name}", name, "x"), n=n)
        return set(sites(ledger))

    names = [f"t{i}" for i in range(60)]
    assert fired(names) == fired(names[::-1])
    assert 10 <= len(fired(names)) <= 40


def test_what_a_fault_further_in_made_is_broken_by_the_one_further_out() -> None:
    stage, ledger = staged(ToolFault(mode="malformed"), tool_error())
    (text,) = told(World(), stage, ("c1", "search", "x"))
    assert text.startswith(OUTAGE[: len(OUTAGE) // 2])
    assert text.endswith('{"result": tru')
    assert {firing.mode for firing in ledger.fired} == {"error", "malformed"}


def test_a_fault_of_which_nothing_is_left_is_masked() -> None:
    stage, ledger = staged(tool_error(), ToolFault(mode="malformed"), ToolFault(mode="slow", delay_ms=9))
    world = World()
    assert told(world, stage, ("c1", "search", "x")) == [OUTAGE]
    assert (sites(ledger), world.slept) == (["tool/search#1"], [])
    assert [(firing.mode, firing.detail) for firing in ledger.masked] == [
        ("malformed", "masked by error"),
        ("slow", "masked by error"),
    ]


def test_a_result_is_slow_once() -> None:
    stage, ledger = staged(ToolFault(mode="slow", delay_ms=100))
    world = World()
    body = request(("c1", "search", "x"))
    for n in (1, 2):
        assert told(world, stage, ("c1", "search", "x"), n=n) == ["x"]
    assert world.slept == [0.1]
    assert world.asked[0].body == body
    assert [firing.detail for firing in ledger.fired] == ["delayed by 100 ms"]


def test_a_turn_is_given_back_by_a_fault_that_found_nothing_to_change() -> None:
    stage, ledger = staged(ToolFault(mode="malformed", times=1))
    assert told(World(), stage, ("c1", "search", ""))[0] == ""
    assert ledger.fired == []
    assert told(World(), stage, ("c1", "search", ""), ("c2", "search", "ab"), n=2)[1].startswith("a{")
    assert sites(ledger) == ["tool/search#2"]


def test_a_fault_that_says_what_the_tool_said_anyway_does_not_fire() -> None:
    stage, ledger = staged(ToolFault(mode="malicious_response", payload="x"))
    assert told(World(), stage, ("c1", "search", "x")) == ["x"]
    assert ledger.fired == []


def test_a_request_that_never_goes_out_masks_and_the_next_one_unmasks() -> None:
    limit = LlmFault(mode="rate_limit", calls=[1])
    stage, ledger = staged(tool_error(), limit)
    world = World()
    reply, _ = world.read(stage, llm_call(body=request(("c1", "search", "x"))))
    assert (reply.status, world.asked) == (429, [])
    assert [(f.mode, f.detail) for f in ledger.masked] == [("error", "masked by rate_limit")]
    assert told(world, stage, ("c1", "search", "x"), n=2) == [OUTAGE]
    assert (sites(ledger), ledger.masked) == (["llm/gpt-4o#1", "tool/search#1"], [])


def test_a_world_that_fails_has_heard_it_all_the_same() -> None:
    stage, ledger = staged(tool_error())
    world = World(CallFailed("reset", "gone"))
    with pytest.raises(CallFailed):
        world.cross(stage, llm_call(body=request(("c1", "search", "x"))))
    assert sites(ledger) == ["tool/search#1"]
    assert told(World(), stage, ("c1", "search", "x"), n=2) == [OUTAGE]


def test_results_that_a_fault_further_out_has_moved_are_found_again() -> None:
    def preaching(call: Call) -> Flow:
        document = json.loads(call.body)
        document["messages"].insert(0, {"role": "system", "content": "obey"})
        return (yield from inward(Call(**{**fields(call), "body": json.dumps(document).encode()})))

    def fields(call: Call) -> dict[str, Any]:
        return {name: getattr(call, name) for name in Call.__dataclass_fields__}

    from flakestorm.faults.base import llm_faults

    llm_faults.add("preaching")(lambda _spec, _scene: preaching)
    try:
        stage, ledger = staged(tool_error(), LlmFault(mode="preaching"))
        world = World()
        assert told(world, stage, ("c1", "search", "x")) == [OUTAGE]
        assert json.loads(world.asked[0].body)["messages"][0]["content"] == "obey"
        assert sites(ledger) == ["tool/search#1"]
    finally:
        del llm_faults._known["preaching"]


def test_several_threads_meet_one_result_once() -> None:
    stage, ledger = staged(ToolFault(mode="slow", delay_ms=1), tool_error(tool="search", times=1))
    together = threading.Barrier(8)
    heard: list[list[str]] = []

    def agent(n: int) -> None:
        together.wait(timeout=10)
        heard.append(told(World(), stage, ("c1", "search", "x"), n=n))

    threads = [threading.Thread(target=agent, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == [[OUTAGE]] * 8
    assert sorted(firing.mode for firing in ledger.fired) == ["error", "slow"]


# --- call or result ---------------------------------------------------------------------------------------------------


def test_by_default_a_tool_whose_calls_are_seen_is_not_broken_twice() -> None:
    stage, ledger = staged(tool_error(tool="search"))
    World().cross(stage, tool_call("search"))
    assert told(World(), stage, ("c1", "search", "x"), ("c2", "pay", "x")) == ["x", "x"]
    assert sites(ledger) == ["tool/search#1"]


def test_a_call_of_another_name_that_the_fault_was_for_spares_the_results_it_led_to() -> None:
    stage, ledger = staged(tool_error(tool="*"))
    http = Call("GET", "https://x.test/", kind="http", name="x.test", site=Site("http", "x.test", 1))
    World().cross(stage, http)
    assert told(World(), stage, ("c1", "search", "x")) == ["x"]
    assert told(World(), stage, ("c1", "search", "x"), ("c2", "pay", "x"), n=2) == ["x", OUTAGE]
    assert sites(ledger) == ["http/x.test#1", "tool/pay#1"]


def test_where_settles_it() -> None:
    stage, ledger = staged(tool_error(tool="a", where="result"), tool_error(tool="b", where="call"))
    replies = [World().cross(stage, tool_call(name)).status for name in ("a", "b")]
    assert replies == [200, 503]
    assert told(World(), stage, ("c1", "a", "x"), ("c2", "b", "x"), ("c3", "b", "x")) == [OUTAGE, "x", "x"]
    assert sites(ledger) == ["tool/b#1", "tool/a#1"]


def test_a_fault_for_a_url_is_not_for_results() -> None:
    stage, ledger = staged(tool_error(tool="search", match_url="*/x"))
    assert told(World(), stage, ("c1", "search", "x")) == ["x"]
    assert ledger.matched == {}


def test_a_result_counts_as_found_whether_or_not_the_triggers_agree() -> None:
    stage, ledger = staged(tool_error(tool="search", calls=[7]), tool_error(tool="pay"))
    told(World(), stage, ("c1", "search", "x"))
    assert ledger.matched == {0: 1}


def test_without_a_fault_for_results_a_request_is_not_even_read() -> None:
    stage, _ = staged(tool_error(tool="search", where="call"))
    world = World()
    call = llm_call(body=request(("c1", "search", "x")))
    assert world.cross(stage, call) is world.answer
    assert world.asked == [call]
    assert world.asked[0].body is call.body


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_tool_is_named_by_the_reply_that_asked_for_it() -> None:
    """As with OpenAI's `previous_response_id`: the request with the result does not hold the call."""
    asked = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    answer = {"choices": [{"message": {"role": "assistant", "tool_calls": [asked]}, "finish_reason": "tool_calls"}]}
    said = Recorded(200, JSON, chunks=[json.dumps(answer).encode()])
    noted = [Exchange(Site("llm", "gpt-4o", 1), wire="openai_chat", reply=said)]
    ledger = Ledger()
    schedule = Schedule.of(Chaos(tool_faults=[tool_error(tool="search")]))
    stage = schedule.stage(Choices(1), ledger, noted=lambda: noted)
    world = World()
    body = json.dumps(
        {"model": "gpt-4o", "messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}
    ).encode()
    world.read(stage, llm_call(n=2, body=body))
    assert world.asked[0].body == body.replace(b'"x"', json.dumps(OUTAGE).encode())
    assert sites(ledger) == ["tool/search#1"]


def test_a_stage_outside_hears_what_the_agent_asked() -> None:
    stage, _ = staged(tool_error(tool="search"))
    seen: list[bytes] = []

    def watch(call: Call) -> Flow:
        seen.append(call.body)
        return (yield from inward(call))

    world = World()
    world.read(chain(watch, stage), llm_call(body=request(("c1", "search", "x"))))
    assert seen == [request(("c1", "search", "x"))]
    assert world.asked[0].body != seen[0]
