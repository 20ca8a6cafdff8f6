"""Every rule on a run's trajectory, kept, broken and undecided: on runs that others recorded, and on the demo's tapes.

The rows are the table. A new type of rule on the trajectory has no rows yet, and the first test says so.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from contracts_support import inv
from e2e_support import PROGRAMS, flakestorm, write_config
from flakestorm.contracts.base import RunView, invariants, trajectory
from flakestorm.contracts.matrix import judge, prepare
from flakestorm.core.verdict import Verdict
from flakestorm.demo.run import CONFIG, serve
from flakestorm.importers.files import import_file
from flakestorm.tape.document import said
from flakestorm.tape.reader import Tape
from trajectories_support import DATA, airline, airline_run, dojo_run
from upstream import Canned, Request, Upstream, document

WIRE = DATA.parent / "wire"
real = pytest.mark.skipif(not DATA.is_dir(), reason=f"the recorded runs are not at {DATA}")


class Row(NamedTuple):
    """What a rule says about a run: its type and settings, where the run is, the outcome, and words of the reason."""

    rule: str
    settings: dict[str, Any]
    run: tuple[str, str | int]
    outcome: str
    reason: str

    @property
    def place(self) -> str:
        return "demo" if self.run[0] in MATRIX else "real"

    @property
    def id(self) -> str:
        return f"{self.rule}-{self.outcome}-{'-'.join(map(str, self.run))}"

    @property
    def spec(self) -> dict[str, Any]:
        return {"id": self.id, "type": self.rule, **self.settings}


def rows(rule: str, *cells: tuple[tuple[str, str | int], dict[str, Any], str, str]) -> list[Row]:
    return [Row(rule, settings, run, outcome, reason) for run, settings, outcome, reason in cells]


# Where the runs are. `tau` and `dojo`: the recorded run of this number, read from its tape. `wire`: tau-bench and
# AgentDojo have not kept what their models counted, so rules on tokens are kept and broken by recorded traffic that
# tells. `again`: a recorded conversation lived through again under this scenario, because nothing was broken on purpose
# then. `demo`: the demo's agent in this scenario. `unnamed`: the same, where nobody told flakestorm the tools' URLs, so
# that the model's conversation is all that shows them.
CUT = {"mode": "truncated_response", "max_tokens": 6}
MATRIX: dict[str, list[dict[str, Any]]] = {
    "demo": [
        {"name": "calm"},
        {"name": "search-down", "tool_faults": [{"tool": "search_flights", "mode": "error"}]},
        {"name": "search-hiccup", "tool_faults": [{"tool": "search_flights", "mode": "error", "times": 1}]},
        {"name": "second-search-fails", "tool_faults": [{"tool": "search_flights", "mode": "error", "calls": [2]}]},
        {"name": "desk-hangs", "tool_faults": [{"tool": "book_flight", "mode": "timeout"}]},
        {"name": "desk-hears-twice", "tool_faults": [{"tool": "book_flight", "mode": "duplicate"}]},
        {"name": "model-limited", "llm_faults": [{"mode": "rate_limit", "times": 1}]},
        {"name": "model-hangs", "llm_faults": [{"mode": "timeout", "delay_ms": 30000}]},
        {"name": "model-babbles", "llm_faults": [{"mode": "garbage", "calls": [3]}]},
    ],
    "unnamed": [
        {"name": "order-cut-once", "llm_faults": [{**CUT, "calls": [2]}]},
        {"name": "order-cut", "llm_faults": [{**CUT, "calls": [2, 3]}]},
    ],
}
AGAIN: list[dict[str, Any]] = [
    {"name": "lookup-hiccup", "tool_faults": [{"tool": "get_reservation_details", "mode": "error", "times": 1}]},
    {"name": "model-limited", "llm_faults": [{"mode": "rate_limit", "calls": [1, 2]}]},
    {"name": "model-gone", "llm_faults": [{"mode": "server_error"}]},
]
LIVED = (48, 72, 97)
"""tau-bench runs that are lived through again: with two look-ups of a reservation, with one, and with none."""

COUNTED = "pydantic__pydantic-ai/tests/cassettes/test_dbos/test_complex_agent_run_sequential_tool.yaml"
SEARCHED = "simonw__llm-anthropic/tests/cassettes/test_anthropic/test_web_search.yaml"
ROUTED = (
    "pydantic__pydantic-ai/tests/models/openrouter/cassettes/test_cache/"
    "test_openrouter_cache_all_settings_real_api.yaml"
)

BOOK, TRANSFER = {"tool": "book_flight"}, {"tool": "transfer_to_human_agents"}
RESERVE = {"tool": "book_reservation"}
ALONE = {**RESERVE, "schema": {"properties": {"passengers": {"maxItems": 1}}}}
ORDER = {**BOOK, "schema": {"required": ["flight", "date", "passenger"]}}
ISO_DATES = {**BOOK, "schema": {"properties": {"date": {"pattern": r"^\d{4}-\d\d-\d\d$"}}}}
KNOWN_FIRST = {"before": "get_user_details", "after": "book_reservation"}
SEARCHED_FIRST = {"before": "search_flights", "after": "book_flight"}
OPEN = "no result of it came back, so nobody knows whether it was made"
STOPPED = "the agent did not finish: timeout: no answer within 20000 ms; until then: "

TABLE = [
    *rows(
        "tool_called",
        (("tau", 0), RESERVE, "pass", "book_reservation was called: book_reservation in llm/gpt-4o#"),
        (("tau", 1), RESERVE, "fail", "book_reservation was never called; tools seen: get_user_details"),
        (("tau", 2), TRANSFER, "inconclusive", OPEN),  # the record ends with it
        (("dojo", 0), {"tool": "search_*", "args": {"date": "2024-05-26"}}, "pass", "search_* was called"),
        (("dojo", 1), {"tool": "send_email"}, "fail", "send_email was never called; tools seen: get_day_calendar"),
        (("demo", "calm"), {**BOOK, "args": {"passenger": "Ada Lovelace"}}, "pass", "tool/book_flight#1"),
        (("demo", "search-down"), BOOK, "fail", "book_flight was never called; tools seen: search_flights"),
        (("unnamed", "order-cut"), BOOK, "inconclusive", OPEN),  # half of an order; what the agent does with it is open
    ),
    *rows(
        "tool_not_called",
        (("tau", 1), {"tool": "book_*"}, "pass", "book_* was not called"),
        (("tau", 0), {"tool": "book_*"}, "fail", "book_* was called"),
        (("tau", 2), TRANSFER, "inconclusive", OPEN),
        (("demo", "search-down"), BOOK, "pass", "book_flight was not called"),
        (("demo", "desk-hangs"), BOOK, "fail", "book_flight was called: tool/book_flight#1"),
        (("unnamed", "order-cut"), BOOK, "inconclusive", OPEN),
    ),
    *rows(
        "tool_order",
        (("tau", 0), KNOWN_FIRST, "pass", "came before book_reservation"),
        (
            ("tau", 75),
            {"before": "get_reservation_details", "after": "cancel_reservation"},
            "fail",
            "and get_reservation_details not before it",
        ),
        (("tau", 1), KNOWN_FIRST, "inconclusive", "nothing in this run shows that there is such a tool"),
        (("dojo", 0), {"before": "search_emails", "after": "delete_email"}, "pass", "so nothing was out of order"),
        (("demo", "calm"), SEARCHED_FIRST, "pass", "(tool/search_flights#1) came before book_flight"),
        (("demo", "calm"), {"before": "approve_*", "after": "book_flight"}, "fail", "and approve_* not before it"),
        (("unnamed", "order-cut"), SEARCHED_FIRST, "inconclusive", OPEN),
    ),
    *rows(
        "tool_args",
        (("tau", 0), ALONE, "pass", "fit the schema"),
        (("tau", 16), ALONE, "fail", "$.passengers"),
        (("tau", 1), ALONE, "inconclusive", "nothing in this run shows that there is such a tool"),
        (("dojo", 0), {**ISO_DATES, "tool": "search_calendar_events"}, "pass", "all 1 calls fit the schema"),
        (("demo", "calm"), ORDER, "pass", "the arguments of all 1 calls fit the schema: tool/book_flight#1"),
        (("demo", "calm"), ISO_DATES, "fail", "$.date: '12 May' does not match"),
        (("unnamed", "order-cut"), ORDER, "inconclusive", OPEN),
    ),
    *rows(
        "max_calls",
        (("tau", 0), {"tool": "search_*", "limit": 4}, "pass", "at most 4 allowed"),
        (("tau", 5), {"tool": "search_*", "limit": 4}, "fail", "more than 4; the first too many is search_"),
        (("tau", 2), {**TRANSFER, "limit": 0}, "inconclusive", "nobody knows whether transfer_to_human_agents in llm"),
        (("demo", "calm"), {**BOOK, "limit": 1}, "pass", "1 calls to book_flight, at most 1 allowed"),
        (("demo", "model-limited"), {"kind": "llm", "limit": 3}, "fail", "4 llm calls, more than 3"),  # the SDK's retry
        (("unnamed", "order-cut-once"), {**BOOK, "limit": 1}, "inconclusive", "1 calls to book_flight, and nobody"),
    ),
    *rows(
        "no_duplicate_side_effect",
        (("tau", 14), {"tool": "cancel_reservation"}, "pass", "4 of 4 calls reached cancel_reservation"),
        (("tau", 75), RESERVE, "fail", "book_reservation was called 2 times with the same arguments"),
        (("tau", 26), {"tool": "update_*", "key": "reservation_id"}, "inconclusive", OPEN),
        (("dojo", 36), {"tool": "search_*"}, "inconclusive", "and the answers are the same"),
        (("demo", "calm"), BOOK, "pass", "1 of 1 calls reached book_flight"),
        (("demo", "desk-hears-twice"), BOOK, "fail", "was delivered 2 times and carried no idempotency key"),
        (("unnamed", "order-cut-once"), BOOK, "inconclusive", OPEN),
    ),
    *rows(
        "no_retry_storm",
        (("tau", 0), {}, "pass", "nothing that failed was tried again"),
        (("again", "model-limited"), {"limit": 2}, "fail", "llm/gpt-4o#1 was tried 3 times within"),
        (("tau", 29), {"limit": 2}, "inconclusive", "was tried 3 times, and the tape does not say when"),
        (("demo", "calm"), {"limit": 1}, "pass", "nothing that failed was tried again"),
        (("demo", "model-limited"), {"limit": 1}, "fail", "llm/gpt-4o-mini#1 was tried 2 times within"),
        (("demo", "model-hangs"), {}, "inconclusive", STOPPED + "the most tried call was tried 3 times"),
    ),
    *rows(
        "max_tokens",
        (("wire", COUNTED), {"limit": 2000}, "pass", "1,339 tokens in 3 model calls, at most 2,000 allowed"),
        (("wire", COUNTED), {"limit": 1000}, "fail", "1,339 tokens in 3 model calls, more than 1,000"),
        (("tau", 0), {"limit": 100_000}, "inconclusive", "llm/gpt-4o#1 and 14 more did not say how many tokens"),
        (("demo", "calm"), {"limit": 1000}, "pass", "tokens in 3 model calls, at most 1,000 allowed"),
        (("demo", "calm"), {"limit": 100}, "fail", "tokens in 3 model calls, more than 100"),
        (("demo", "model-hangs"), {"limit": 1000}, "inconclusive", STOPPED + "0 tokens in 3 model calls"),
    ),
    *rows(
        "max_cost",
        (("wire", COUNTED), {"limit": 0.01}, "pass", "0.004128 US dollars for 3 model calls, at most 0.01 allowed"),
        (("wire", COUNTED), {"limit": 0.004}, "fail", "0.004128 US dollars for 3 model calls, more than 0.004"),
        (("wire", ROUTED), {"limit": 1}, "inconclusive", "the price of anthropic/claude-sonnet-4.6 is not known"),
        (("tau", 0), {"limit": 1}, "inconclusive", "llm/gpt-4o#1 did not say how many tokens it used"),
        (("demo", "calm"), {"limit": 0.01}, "pass", "US dollars for 3 model calls, at most 0.01 allowed"),
        (("demo", "calm"), {"limit": 0.0001}, "fail", "US dollars for 3 model calls, more than 0.0001"),
        (("demo", "model-hangs"), {"limit": 0.01}, "inconclusive", STOPPED + "0.000000 US dollars for 3 model calls"),
    ),
    *rows(
        "grounded",
        (("tau", 0), {}, "pass", "numbers, dates and ids in the answer were told to the agent"),
        (("tau", 61), {}, "fail", "1 of 2 facts were never told to the agent: 38"),
        (
            ("again", "model-gone"),
            {},
            "inconclusive",
            "the agent gave no output to judge: crash: the agent raised openai",
        ),
        (("demo", "calm"), {}, "pass", "numbers, dates and ids in the answer were told to the agent"),
        (("demo", "model-babbles"), {}, "fail", "facts were never told to the agent"),
        (("demo", "model-hangs"), {}, "inconclusive", "the agent gave no output to judge: timeout"),
    ),
    *rows(
        "acknowledges_failure",
        (("tau", 98), {}, "pass", "book_reservation failed (book_reservation in llm/gpt-4o#26"),
        (("tau", 29), {}, "fail", "and the answer does not say so"),
        (("again", "lookup-hiccup-at-97"), {}, "inconclusive", "no tool failed; no tool was seen"),
        (("demo", "search-down"), {}, "pass", 'and the answer says so: "'),
        (("demo", "desk-hangs"), {}, "fail", "book_flight failed (tool/book_flight#1"),
        (("demo", "second-search-fails"), {}, "inconclusive", "no tool failed; tools seen: search_flights"),
    ),
    *rows(
        "recovers",
        (("again", "lookup-hiccup"), {}, "pass", "every call that error at tool/get_reservation_details#1 broke was"),
        (("again", "lookup-hiccup-at-72"), {}, "fail", "no later call of get_reservation_details was answered"),
        (("again", "lookup-hiccup-at-97"), {}, "inconclusive", "no transient fault fired"),
        (("demo", "model-limited"), {}, "pass", "every call that rate_limit at llm/gpt-4o-mini#1 broke was made good"),
        (("demo", "search-hiccup"), {}, "fail", "no later call of search_flights was answered"),
        (("demo", "second-search-fails"), {}, "inconclusive", "no transient fault fired"),
    ),
]


def test_no_rule_on_the_trajectory_is_without_its_six_examples() -> None:
    for name in invariants:
        invariants.get(name)  # a built-in type says where it looks when it is asked for
    told: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in TABLE:
        told[row.rule, row.place].add(row.outcome)
    every = {"pass", "fail", "inconclusive"}
    assert told == {(rule, place): every for rule in trajectory for place in ("real", "demo")}


@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.place == "real" and row.run[0] != "again"], ids=lambda r: r.id
)
@real
def test_on_a_recorded_run(row: Row, tmp_path: Path) -> None:
    where, which = row.run
    if where == "wire":
        import_file(WIRE / str(which), tmp_path / "run.tape")
        exchanges = Tape.open(tmp_path / "run.tape").exchanges()
        answer = said(exchanges[-1], exchanges[-1].reply)
        run = RunView("", "" if answer is None else answer.text, exchanges=exchanges)
    else:
        run = (airline_run if where == "tau" else dojo_run)(int(which))
    spec = inv(row.rule, **row.settings)
    prepare([spec])
    check(row, judge(spec, run))


def check(row: Row, verdict: Verdict | None) -> None:
    assert verdict is not None, "it does not apply"
    assert verdict.outcome == row.outcome, verdict.reason
    assert row.reason in verdict.reason


def cells(report: dict[str, Any]) -> dict[tuple[str, str, int], Verdict]:
    return {(c["scenario"], c["invariant"], c["prompt"]): Verdict(c["verdict"], c["reason"]) for c in report["cells"]}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[tuple[str, str, int], Verdict]]:
    """The demo's agent, run once with its tools' names and once without."""
    found = {}
    for where, matrix in MATRIX.items():
        folder = tmp_path_factory.mktemp(where)
        config = yaml.safe_load(CONFIG.read_text())
        config["golden_prompts"] = config["golden_prompts"][:1]
        config["contract"].update(invariants=[r.spec for r in TABLE if r.run[0] == where], chaos_matrix=matrix)
        if where == "unnamed":
            del config["boundary"]
        (folder / "flakestorm.yaml").write_text(yaml.safe_dump(config))
        with serve(reports=folder / "reports") as variables:
            done = flakestorm(folder, "contract", "run", report=True, env=variables)
        assert done.report is not None, done.err
        found[where] = cells(done.report)
    return found


@pytest.mark.parametrize("row", [row for row in TABLE if row.place == "demo"], ids=lambda row: row.id)
def test_on_a_tape_of_the_demo(row: Row, demo: dict[str, dict[tuple[str, str, int], Verdict]]) -> None:
    where, scenario = row.run
    check(row, demo[where].get((str(scenario), row.id, 0)))


def model(request: Request) -> Canned:
    """Says what the recorded model said at this point of the conversation, whatever its tools are made to say now."""
    asked = request.json()["messages"]
    opening = next(message["content"] for message in asked if message["role"] == "user")
    run = next(airline()[i] for i in LIVED if opening == _opening(i))
    message = run["traj"][len(asked)]
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return document({"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [choice]})


def _opening(index: int) -> str:
    return next(message["content"] for message in airline()[index]["traj"] if message["role"] == "user")


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, int], Verdict]:
    """Recorded conversations, lived through again while things break."""
    folder = tmp_path_factory.mktemp("again")
    shutil.copy(PROGRAMS / "recorded_agent.py", folder)
    recorded = {_opening(index): airline()[index]["traj"] for index in LIVED}
    (folder / "recorded.json").write_text(json.dumps(recorded))
    rules = [row.spec for row in TABLE if row.run[0] == "again"]
    write_config(
        folder,
        agent={"type": "python", "endpoint": "recorded_agent:answer"},
        golden_prompts=list(recorded),
        contract={"name": "lived again", "invariants": rules, "chaos_matrix": AGAIN},
    )
    with Upstream() as up:
        up.reply("/v1/chat/completions", model)
        env = {"OPENAI_BASE_URL": f"{up.url}/v1", "OPENAI_API_KEY": "test-key-of-nobody", "RECORDED": "recorded.json"}
        done = flakestorm(folder, "contract", "run", report=True, env=env)
    assert done.report is not None, done.err
    return cells(done.report)


@pytest.mark.parametrize("row", [row for row in TABLE if row.run[0] == "again"], ids=lambda row: row.id)
@real
def test_on_a_recorded_conversation_lived_through_again(row: Row, again: dict[tuple[str, str, int], Verdict]) -> None:
    scenario, _, number = str(row.run[1]).partition("-at-")
    check(row, again.get((scenario, row.id, LIVED.index(int(number or LIVED[0])))))
