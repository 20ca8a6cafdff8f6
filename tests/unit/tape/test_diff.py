import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.site import Site, Sites
from flakestorm.tape.diff import Run, diff
from flakestorm.tape.model import Exchange
from replay_support import SPANS, chat, exchange, reply


def run(*asked: tuple[str, Any, Any], lanes: list[str] | None = None, **more: Any) -> Run:
    """Calls (tool or model by name), each with what it asks and is told."""
    sites, made = Sites(), []
    for n, (name, body, told) in enumerate(asked):
        model = name.startswith("gpt")
        site = sites.next("llm" if model else "tool", name)
        said = reply(json.dumps(told))
        lane = lanes[n] if lanes else "1"
        made.append(exchange(n, body, said, site=site, lane=lane, wire="openai_chat" if model else ""))
    return Run(made, **more)


def answer(text: str, call_id: str = "") -> dict[str, Any]:
    calls = (
        [{"id": call_id, "type": "function", "function": {"name": "search", "arguments": "{}"}}] if call_id else None
    )
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def outcomes(found: Any) -> list[tuple[str, str]]:
    return [(str(step.site), step.outcome) for step in found.steps]


def test_a_run_is_the_same_as_itself() -> None:
    one = run(("search", {"to": "Oslo"}, {"n": 1}), output="done", input="go")
    found = diff(one, one, spans=SPANS)
    assert (found.equal, found.first) == (True, None)
    assert outcomes(found) == [("agent/input#1", "same"), ("tool/search#1", "same"), ("agent/output#1", "same")]


def test_ids_may_be_other_ones_as_long_as_one_stands_for_one() -> None:
    def with_id(name: str, then: str) -> Run:
        turns = [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": then, "content": "3"}]
        return run(
            ("gpt-4o", chat("go"), answer("", name)), ("gpt-4o", {"model": "gpt-4o", "messages": turns}, answer("3"))
        )

    old = with_id("call_00000000000001", "call_00000000000001")
    assert diff(old, with_id("call_00000000000002", "call_00000000000002"), spans=SPANS).equal


def test_what_changed_first_is_told_before_what_followed() -> None:
    one = run(("search", {"to": "Oslo"}, {"n": 1}), ("gpt-4o", chat("n is 1"), answer("one")), output="one")
    two = run(("search", {"to": "Oslo"}, {"n": 2}), ("gpt-4o", chat("n is 2"), answer("two")), output="two")
    found = diff(one, two, spans=SPANS)
    assert outcomes(found) == [
        ("tool/search#1", "changed"),
        ("llm/gpt-4o#1", "changed"),
        ("agent/output#1", "changed"),
    ]
    assert found.first is found.steps[0]
    assert (found.steps[0].what, found.steps[0].details) == (("reply",), ("reply body.n: 1 -> 2",))
    assert found.steps[1].what == ("request", "reply")


def test_a_call_that_is_added_does_not_shift_the_others() -> None:
    one = run(("search", {"to": "Oslo"}, 1), ("search", {"to": "Rome"}, 2))
    two = run(("search", {"to": "Bergen"}, 0), ("search", {"to": "Oslo"}, 1), ("search", {"to": "Rome"}, 2))
    found = diff(one, two, spans=SPANS)
    assert outcomes(found) == [("tool/search#1", "added"), ("tool/search#1", "same"), ("tool/search#2", "same")]
    back = diff(two, one, spans=SPANS)
    assert outcomes(back) == [("tool/search#1", "missing"), ("tool/search#2", "same"), ("tool/search#3", "same")]


def test_lanes_are_told_apart_by_what_they_do() -> None:
    calls = [("search", {"to": city}, n) for n, city in enumerate(["a", "b", "c", "d"])]
    one = run(calls[0], calls[1], calls[2], calls[3], lanes=["1", "2", "1", "2"])
    two = run(calls[1], calls[0], calls[3], calls[2], lanes=["1", "2", "1", "2"])
    assert diff(one, two, spans=SPANS).equal


def test_two_runs_without_anything_are_equal() -> None:
    assert diff(Run([]), Run([])).equal


_RUNS = st.lists(st.tuples(st.sampled_from(["search", "book"]), st.integers(0, 3), st.integers(0, 2)), max_size=6)


@given(_RUNS, _RUNS)
def test_every_exchange_is_in_one_step_and_in_its_place(one: list[Any], two: list[Any]) -> None:
    a, b = run(*one), run(*two)
    found = diff(a, b, spans=SPANS)
    assert [step.a for step in found.steps if step.a is not None] == a.exchanges
    seen = [step.b for step in found.steps if step.b is not None]
    assert sorted(seen, key=_place) == b.exchanges
    assert found.equal == (one == two)


def _place(exchange: Exchange | None) -> int:
    return -1 if exchange is None else exchange.n


def test_a_site_is_that_of_the_first_run() -> None:
    one = run(("search", {"to": "Rome"}, 2))
    two = run(("search", {"to": "Oslo"}, 1), ("search", {"to": "Rome"}, 2))
    step = diff(one, two, spans=SPANS).steps[1]
    assert (step.site, step.b and step.b.site) == (Site("tool", "search", 1), Site("tool", "search", 2))
