from dataclasses import replace
from typing import Any

import pytest

from contracts_support import CRASH, asks_for, call, inv, said, tells
from flakestorm.contracts.base import RunView
from flakestorm.contracts.grounding import grounded
from flakestorm.contracts.matrix import judge
from flakestorm.core.verdict import Verdict
from flakestorm.tape.model import Exchange, Recorded
from trajectories_support import airline, airline_run, dojo, dojo_run

ASKED = asks_for(("search", {"to": "OSL", "max": 999}))
ASKED.body = b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "A flight to Oslo for 2 people"}]}'
FOUND = tells(("search", '{"flight": "SK4521", "price": 1200, "date": "2026-05-12", "departs": "15:30", "rate": 0.2}'))


def verdict(output: str, *exchanges: Exchange, asked: str = "A flight to Oslo for 2 people, card 4421486") -> Verdict:
    return grounded(inv("grounded"), RunView(asked, output, exchanges=exchanges or (ASKED, FOUND)))


@pytest.mark.parametrize(
    "output",
    [
        "SK4521 costs 1200 EUR.",
        "sk4521 costs $1,200.00 and leaves on May 12 at 3:30 PM.",
        "It leaves on 12 May 2026, 20% full.",
        "1200 each, 2400 in all.",
        "Paid with the card ending in 1486.",
        "There are 3 options.",  # a count
        "Nothing to say.",
    ],
)
def test_what_was_told_is_grounded(output: str) -> None:
    result = verdict(output)
    assert result.outcome == "pass", result.reason


@pytest.mark.parametrize(
    ("output", "invented"),
    [
        ("SK4522 costs 1200 EUR.", "SK4522"),
        ("SK4521 costs 1300 EUR.", "1300"),
        ("It leaves on May 13.", "May 13"),
        ("It leaves on May 12, 2027.", "May 12, 2027"),
        ("It leaves at 4:30 PM.", "4:30 PM"),
        ("At most 999 EUR.", "999"),  # the model's own words in a tool call prove nothing
        ("Your reference is QX7731.", "QX7731"),
    ],
)
def test_what_nobody_told_is_invented(output: str, invented: str) -> None:
    result = verdict(output)
    assert result.outcome == "fail"
    assert f" facts were never told to the agent: {invented}" in result.reason


def test_what_the_model_said_before_proves_nothing() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ref ZZ99"}]}
    assert verdict("ZZ99", call("llm", "m", body=body, wire="openai_chat")).outcome == "fail"


def test_a_tool_behind_a_seam_tells_too_and_a_lie_is_told() -> None:
    lied = call("tool", "search", reply=Recorded(200, chunks=[b'{"price": 777}']), world=Recorded(200, chunks=[b"{}"]))
    assert verdict("777", lied).outcome == "pass"


def test_a_result_that_a_fault_rewrote_is_told_as_rewritten() -> None:
    told = tells(("search", "costs 1200"))
    told.world_body = told.body.replace(b"1200", b"1300")
    assert verdict("1300", ASKED, told).outcome == "pass"
    assert verdict("1200", ASKED, told).outcome == "fail"


def test_where_nobody_can_know_it_is_inconclusive() -> None:
    nothing = grounded(inv("grounded"), said("It costs 1200."))
    assert nothing.outcome == "inconclusive"
    assert nothing.reason.startswith("nothing crossed the boundary, so nobody knows where the answer has this from")
    opaque = call("llm", "m", body=b"\x00\x01")
    assert verdict("1200", opaque).outcome == "inconclusive"
    assert judge(inv("grounded"), RunView("hi", error=CRASH)).outcome == "inconclusive"  # type: ignore[union-attr]


ASKS = {"model": "m", "messages": [{"role": "user", "content": "the price?"}]}
PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/1.png"}}]}]


@pytest.mark.parametrize(
    ("body", "reply", "wire", "why"),
    [
        ({**ASKS, "messages": PICTURE}, b"{}", "openai_chat", "llm/m#1 shows the model what is no text (image_url)"),
        (
            ASKS,
            b'{"annotations": [{"type": "url_citation"}]}',
            "openai_chat",
            "may have looked up itself (url_citation)",
        ),
        ({**ASKS, "web_search_options": {}}, b"{}", "openai_chat", "may have looked up itself (web_search_options)"),
        (
            {"model": "m", "input": "the price?", "previous_response_id": "resp_1"},
            b"{}",
            "openai_responses",
            "llm/m#1 goes on from what only the provider knows (resp_1)",
        ),
    ],
)
def test_what_no_text_told_may_have_been_shown_or_looked_up(body: Any, reply: bytes, wire: str, why: str) -> None:
    asked = call("llm", "m", body=body, wire=wire, reply=Recorded(200, chunks=[reply]))
    found = verdict("It costs 1200.", asked)
    assert found.outcome == "inconclusive"
    assert why in found.reason
    assert verdict("As you said, it costs 77.", asked, asked="77?").outcome == "pass"


def test_a_response_that_is_on_the_tape_is_no_secret() -> None:
    body = {"model": "m", "input": "the price?"}
    made = Recorded(200, chunks=[b'{"id": "resp_1", "output": []}'])
    run = [
        call("llm", "m", body=body, wire="openai_responses", reply=made),
        call("llm", "m", 2, body={**body, "previous_response_id": "resp_1"}, wire="openai_responses"),
    ]
    assert verdict("It costs 1200.", *run).outcome == "fail"


def outcomes(runs: list[RunView]) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in runs:
        outcome = grounded(inv("grounded"), run).outcome
        found[outcome] = found.get(outcome, 0) + 1
    return found


def test_false_alarms_on_real_final_answers() -> None:
    """Of gpt-4o's 100 airline runs three end with a figure that nobody told it: two differences that it does not spell
    out, and a total. AgentDojo's ground truth has none."""
    assert outcomes([airline_run(index) for index in range(len(airline()))]) == {"pass": 97, "fail": 3}
    assert outcomes([dojo_run(index) for index in range(len(dojo()))]) == {"pass": 60}


def test_inventions_in_real_answers_are_found() -> None:
    """One id, price or date of each answer is made another; where it stands more than once, all of them are."""
    swaps: list[tuple[int, Any]] = []
    for index in range(len(airline())):
        run = airline_run(index)
        for mark in ("HAT", "$"):
            at = run.output.find(mark)
            if at >= 0 and run.output[at + len(mark) : at + len(mark) + 2].isdigit():
                old = run.output[at : at + len(mark) + 2]
                swaps.append((index, replace(run, output=run.output.replace(old, f"{mark}97"))))
    missed = [index for index, run in swaps if grounded(inv("grounded"), run).outcome != "fail"]
    assert len(swaps) >= 30
    assert len(missed) <= len(swaps) // 10


@pytest.mark.parametrize(
    "output",
    [
        "1" * 50_000, "1." + "3" * 50_000, "a" * 50_000, "1 " * 25_000, "12:" * 16_000, "A-1-" * 12_500,
        " ".join(str(n * 37 + 1000) for n in range(8_000)),
        " ".join(f"{n % 28 + 1} May {n + 1000}" for n in range(4_500)),
    ],
    ids=["digits", "decimals", "letters", "counts", "times", "ids", "numbers", "dates"],
)  # fmt: skip
def test_no_answer_is_too_long_or_its_numbers_too_large(output: str) -> None:
    """As the answer, and as what was told; a check that breaks off would be inconclusive."""
    for result in (verdict(output), verdict("it costs 98765.5", asked=output)):
        assert result.outcome in ("pass", "fail"), result.reason
    assert verdict(output, asked=output).outcome == "pass"


def test_the_last_digits_are_those_of_something_longer() -> None:
    assert verdict("ends in 486", asked="card 4421486").outcome == "pass"
    assert verdict("ends in 486", asked="card x486").outcome == "pass"
    assert verdict("ends in 148", asked="card 4421486").outcome == "fail"
