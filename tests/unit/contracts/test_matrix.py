from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts_support import CRASH, GONE, asks_for, call, fired, inv, said
from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, invariants
from flakestorm.contracts.matrix import demand, judge, prepare
from flakestorm.core.answer import AgentError
from flakestorm.core.ledger import Canary, Ledger
from flakestorm.core.verdict import Verdict, failed
from flakestorm.errors import Misuse

KEPT = inv("contains", value="sorry")
TOOL = fired(("tool", "search", "tool"), tools=1)
MODEL = fired(("llm", "gpt-4o", "llm"), llms=1)


def outcome(spec: Invariant, run: RunView) -> str | None:
    verdict = judge(spec, run)
    return None if verdict is None else verdict.outcome


@pytest.mark.parametrize(
    ("when", "chaos", "ledger", "expected"),
    [
        ("always", False, Ledger(), "pass"),
        ("always", True, TOOL, "pass"),
        ("always", True, Ledger(planned=1, tools_planned=1), "inconclusive"),
        ("no_chaos", False, Ledger(), "pass"),
        ("no_chaos", True, TOOL, None),
        ("no_chaos", True, Ledger(planned=1, tools_planned=1), None),
        ("any_chaos_active", False, Ledger(), None),
        ("any_chaos_active", True, MODEL, "pass"),
        ("any_chaos_active", True, Ledger(planned=1, llms_planned=1), "inconclusive"),
        ("tool_faults_active", False, Ledger(), None),
        ("tool_faults_active", True, TOOL, "pass"),
        ("tool_faults_active", True, fired(("mcp", "search", "mcp"), tools=1), "pass"),
        ("tool_faults_active", True, MODEL, None),
        ("tool_faults_active", True, fired(("llm", "gpt-4o", "llm"), llms=1, tools=1), "inconclusive"),
        # A context attack counts as a tool fault where it hid in a tool's result, and nowhere else.
        ("tool_faults_active", True, fired(("tool", "search", "context"), planned=1), "pass"),
        ("tool_faults_active", True, fired(("llm", "gpt-4o", "context"), planned=1), None),
        ("tool_faults_active", True, Ledger(planned=1), "inconclusive"),
        ("llm_faults_active", False, Ledger(), None),
        ("llm_faults_active", True, MODEL, "pass"),
        ("llm_faults_active", True, TOOL, None),
        ("llm_faults_active", True, fired(("tool", "search", "tool"), llms=1, tools=1), "inconclusive"),
        ("llm_faults_active", True, fired(("llm", "gpt-4o", "context"), planned=1), None),
    ],
)
def test_when_is_judged_by_what_fired(when: str, chaos: bool, ledger: Ledger, expected: str | None) -> None:
    run = said("sorry", chaos=chaos, ledger=ledger, exchanges=[call("tool", "search")])
    assert outcome(inv("contains", value="sorry", when=when), run) == expected


def test_a_rule_whose_situation_did_not_come_about_is_not_failed_either() -> None:
    run = said(
        "booked", chaos=True, ledger=fired(("llm", "g", "llm"), llms=1, tools=1), exchanges=[call("tool", "pay")]
    )
    verdict = judge(inv("contains", value="sorry", when="tool_faults_active"), run)
    assert verdict is not None
    assert verdict.outcome == "inconclusive"
    assert "the planned tool faults did not fire" in verdict.reason
    assert "tools seen: pay" in verdict.reason


def test_a_pass_without_any_planned_fault_firing_is_inconclusive_and_names_what_was_called() -> None:
    run = said("sorry", chaos=True, ledger=Ledger(1, 1), exchanges=[call("llm", "gpt-4o"), call("tool", "pay")])
    verdict = judge(KEPT, run)
    assert verdict is not None
    assert verdict.outcome == "inconclusive"
    assert verdict.reason.startswith("no planned fault fired; tools seen: pay; also called: llm/gpt-4o (otherwise")


def test_a_fail_without_any_planned_fault_firing_stays_a_fail() -> None:
    assert outcome(KEPT, said("booked", chaos=True, ledger=Ledger(1, 1))) == "fail"


def test_traffic_that_does_not_cross_the_boundary_is_pointed_out() -> None:
    verdict = judge(KEPT, said("sorry", chaos=True, ledger=Ledger(1, 1)))
    assert verdict is not None
    assert "nothing crossed the boundary" in verdict.reason
    assert "agent.start" in verdict.reason


@pytest.mark.parametrize(("hosts", "listed"), [(10, "http/h9 (otherwise"), (12, "http/h9 and 2 more (otherwise")])
def test_what_was_called_is_listed_within_bounds(hosts: int, listed: str) -> None:
    exchanges = [call("http", f"h{n}") for n in range(hosts)]
    verdict = judge(KEPT, said("sorry", chaos=True, ledger=Ledger(1, 1), exchanges=exchanges))
    assert verdict is not None
    assert "no tool was seen; also called: http/h0, " in verdict.reason
    assert listed in verdict.reason


@pytest.mark.parametrize("type_", sorted(invariants))
@pytest.mark.parametrize("negate", [False, True])
def test_an_agent_that_was_not_reached_is_not_judged(type_: str, negate: bool) -> None:
    run = said("", error=GONE, chaos=True, ledger=Ledger(1, 1), transient=frozenset({0}))
    verdict = judge(inv(type_, negate=negate, tool="x", limit=1), run)
    assert verdict == Verdict("inconclusive", f"the agent could not be reached: {GONE.message}")


def test_a_rule_that_does_not_apply_does_not_apply_to_an_unreachable_agent_either() -> None:
    assert judge(inv("contains", value="x", when="no_chaos"), said("", error=GONE, chaos=True)) is None


REQUIRES = [
    ("contains", {"value": "x"}),
    ("contains_any", {"values": ["x"]}),
    ("regex", {"pattern": ".*"}),
    ("valid_json", {}),
    ("output_not_empty", {}),
    ("latency", {"max_ms": 60_000}),
    ("refusal_check", {"probes": ["do harm"]}),
]
FORBIDS = [
    ("excludes_pattern", {"patterns": ["x"]}),
    ("excludes_pii", {}),
    ("refusal_check", {}),
    ("refusal_check", {"probes": ["do harm"], "dangerous_prompts": False}),
]


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("type_", "settings", "requires"), [(*r, True) for r in REQUIRES] + [(*f, False) for f in FORBIDS]
)
def test_without_output_what_is_required_fails_and_what_is_forbidden_is_open(
    type_: str, settings: dict[str, Any], requires: bool, negate: bool
) -> None:
    verdict = judge(inv(type_, negate=negate, **settings), said("", error=CRASH, latency_ms=5))
    assert verdict is not None
    if requires != negate:
        assert verdict == failed(str(CRASH))  # the agent's own error is the reason
    else:
        assert verdict.outcome == "inconclusive"
        assert str(CRASH) in verdict.reason


def test_without_output_a_canary_is_open() -> None:
    run = said("", error=CRASH, chaos=True, ledger=fired(("tool", "t", "context"), planned=1))
    run.ledger.canaries.append(Canary("fs-1"))
    assert outcome(inv("canary_absent"), run) == "inconclusive"


@pytest.mark.parametrize(("negate", "expected"), [(False, "fail"), (True, "pass")])
def test_completing_is_judged_without_output(negate: bool, expected: str) -> None:
    assert outcome(inv("completes", negate=negate), said("", error=CRASH)) == expected


@pytest.mark.parametrize(
    ("type_", "settings", "negate", "expected"),
    [
        ("tool_called", {"tool": "search"}, False, "pass"),  # it was: the tape shows it
        ("tool_called", {"tool": "book"}, False, "fail"),
        ("tool_called", {"tool": "search"}, True, "fail"),
        ("tool_called", {"tool": "book"}, True, "inconclusive"),
        ("tool_not_called", {"tool": "search"}, False, "fail"),  # a fail is always a fail
        ("tool_not_called", {"tool": "book"}, False, "inconclusive"),  # it might have been, had the agent lived
        ("tool_not_called", {"tool": "book"}, True, "fail"),
        ("max_calls", {"limit": 0}, False, "fail"),
        ("max_calls", {"limit": 1}, False, "inconclusive"),
    ],
)
def test_without_output_the_tape_still_counts(
    type_: str, settings: dict[str, Any], negate: bool, expected: str
) -> None:
    verdict = judge(inv(type_, negate=negate, **settings), said("", error=CRASH, exchanges=[call("tool", "search")]))
    assert verdict is not None
    assert verdict.outcome == expected
    if expected == "inconclusive":
        assert str(CRASH) in verdict.reason


def test_a_missing_call_of_a_crashed_agent_gives_the_crash_as_the_reason() -> None:
    verdict = judge(inv("tool_called", tool="book"), said("", error=CRASH, exchanges=[call("tool", "search")]))
    assert verdict == failed(f"{CRASH}; book was never called; tools seen: search")


def test_negation_leaves_an_open_question_open() -> None:
    run = said("ok", exchanges=[asks_for(("pay", {}))])
    assert outcome(inv("tool_not_called", tool="pay"), run) == "inconclusive"
    assert outcome(inv("tool_not_called", tool="pay", negate=True), run) == "inconclusive"


@pytest.mark.parametrize(
    ("type_", "settings", "output"),
    [
        ("contains", {"value": "sorry"}, "sorry"),
        ("contains_any", {"values": ["sorry"]}, "sorry"),
        ("regex", {"pattern": "so+"}, "sorry"),
        ("excludes_pattern", {"patterns": ["x"]}, "sorry"),
        ("valid_json", {}, "[]"),
        ("output_not_empty", {}, "sorry"),
        ("completes", {}, "sorry"),
        ("latency", {"max_ms": 5}, "sorry"),
        ("excludes_pii", {}, "sorry"),
        ("refusal_check", {}, "fine"),
        ("tool_not_called", {"tool": "pay"}, "sorry"),
        ("tool_called", {"tool": "search"}, "sorry"),
        ("max_calls", {"limit": 3}, "sorry"),
    ],
)
def test_every_type_can_be_negated(type_: str, settings: dict[str, Any], output: str) -> None:
    run = said(output, exchanges=[call("tool", "search")])
    assert outcome(inv(type_, **settings), run) == "pass"
    negated = judge(inv(type_, negate=True, **settings), run)
    assert negated is not None
    assert negated.outcome == "fail"
    assert negated.reason.startswith("negated: ")


def test_negation_swaps_what_is_demanded() -> None:
    assert (
        demand(inv("contains", value="x")) == demand(inv("excludes_pattern", patterns=["x"], negate=True)) == "requires"
    )
    assert demand(inv("contains", value="x", negate=True)) == demand(inv("excludes_pii")) == "forbids"
    assert demand(inv("completes")) == demand(inv("completes", negate=True)) == "run"


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Invariant, RunView], Any]], None]:
    """Puts a check in place under the name `mine`, as an installed plug-in would be."""
    return lambda check: monkeypatch.setitem(invariants._known, "mine", check)


@pytest.mark.parametrize("negate", [False, True])
def test_a_check_that_crashes_is_inconclusive_and_says_where(plug_in: Any, negate: bool) -> None:
    def divides(_spec: Invariant, _run: RunView) -> Verdict:
        raise ZeroDivisionError("by zero")

    plug_in(divides)
    verdict = judge(inv("mine", negate=negate), said("ok"))
    assert verdict is not None
    assert verdict.outcome == "inconclusive"
    assert verdict.reason.startswith("check crashed: ZeroDivisionError: by zero (in divides, ")
    assert __file__ in verdict.reason


@pytest.mark.parametrize(
    ("given", "expected"), [(True, "pass"), (False, "fail"), (None, "inconclusive"), ("pass", "inconclusive")]
)
def test_a_check_must_give_a_verdict_or_a_bool(plug_in: Any, given: object, expected: str) -> None:
    plug_in(lambda _spec, _run: given)
    assert outcome(inv("mine"), said("ok")) == expected


def test_an_unlisted_type_requires_an_output(plug_in: Any) -> None:
    plug_in(lambda _spec, _run: True)
    assert judge(inv("mine"), said("", error=CRASH)) == failed(str(CRASH))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (inv("close", id="close", expected="x"), "invariant type 'close' is not available in this version; "),
        (inv("contain", value="x"), "did you mean 'contains'?"),
        (inv("contains", id="apologises"), "invariant 'apologises': type 'contains' needs 'value'"),
        (inv("contains_any", values=[]), "needs 'values'"),
        (inv("latency"), "needs 'max_ms'"),
        (inv("max_calls"), "needs 'limit'"),
        (inv("regex", id="re", pattern="(a"), "invariant 're': '(a' is not a regular expression: missing )"),
        (inv("excludes_pattern", patterns=["ok", "*"]), "'*' is not a regular expression"),
        (inv("max_calls", limit=1, kind="llms"), "unknown kind 'llms'; one of agent, llm,"),
        (inv("excludes_pii", entities=["CREDITCARD"]), "unknown entity 'CREDITCARD'; did you mean 'CREDIT_CARD'?"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_anything_is_run(spec: Invariant, message: str) -> None:
    with pytest.raises(Misuse) as refusal:
        prepare([KEPT, spec])
    assert message in str(refusal.value)


def test_the_refusal_lists_what_is_available() -> None:
    with pytest.raises(Misuse, match=r"available: acknowledges_failure, behavior_unchanged, .*valid_json"):
        judge(inv("solvent"), said("x"))


def test_sound_invariants_are_accepted() -> None:
    prepare([KEPT, inv("max_calls", limit=0, kind="llm"), inv("excludes_pii", entities=["EMAIL_ADDRESS"])])
    prepare([])


SETTINGS = {
    "value": "so",
    "values": ["so"],
    "pattern": "o+",
    "patterns": ["o+"],
    "max_ms": 5,
    "tool": "pay",
    "limit": 1,
}
RUNS = st.builds(
    said,
    st.sampled_from(["", "sorry", "[]", "I can't help with that.", "jane.doe@example.com", "System prompt: be kind"]),
    error=st.sampled_from([None, CRASH, GONE]),
    chaos=st.booleans(),
    latency_ms=st.sampled_from([1.0, 10.0]),
    ledger=st.sampled_from([Ledger(), Ledger(1, 1), Ledger(1), TOOL, MODEL, Ledger(1, canaries=[Canary("so")])]),
    exchanges=st.lists(
        st.sampled_from([call("tool", "pay"), call("llm", "gpt-4o"), asks_for(("pay", {}))]), max_size=3
    ),
)


@given(
    st.sampled_from(sorted(invariants)),
    st.sampled_from(["always", "tool_faults_active", "llm_faults_active", "any_chaos_active", "no_chaos"]),
    RUNS,
)
def test_what_holds_for_every_type_and_run(type_: str, when: str, run: RunView) -> None:
    plainly = judge(inv(type_, when=when, **SETTINGS), run)
    negated = judge(inv(type_, when=when, negate=True, **SETTINGS), run)
    assert (plainly is None) == (negated is None)
    if plainly is None or negated is None:
        return
    assert plainly.reason
    assert negated.reason
    pair = {plainly.outcome, negated.outcome}
    assert "pass" not in pair or len(pair) == 2  # a rule and its opposite are never both kept
    if run.error is GONE:
        assert pair == {"inconclusive"}
    if run.chaos and not run.ledger.fired:
        assert "pass" not in pair
    if run.error is CRASH and type_ not in ("completes", "tool_called", "tool_not_called", "max_calls"):
        assert "pass" not in pair


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            "it raised KeyError: 'x'\n    a.py:3 in f: g()\n\n    b.py:9 in g: d['x']\n",
            "KeyError: 'x' … b.py:9 in g: d['x']",
        ),
        ("\x1b[2J" + "x" * 5000, "x…"),
        ("one line", "crash: one line"),
    ],
)
def test_a_crash_of_many_lines_is_one_bounded_line_in_the_reason(message: str, reason: str) -> None:
    run = said("", error=AgentError("crash", message))
    for invariant in (inv("completes"), inv("excludes_pii"), inv("tool_called", tool="x")):
        verdict = judge(invariant, run)
        assert verdict is not None
        assert reason in verdict.reason
        assert "\n" not in verdict.reason
        assert "\x1b" not in verdict.reason
        assert len(verdict.reason) < 900


def test_an_idle_boundary_names_the_ways_that_exist() -> None:
    run = said("fine", chaos=True, ledger=fired(tools=1))
    verdict = judge(inv("completes"), run)
    assert verdict is not None
    assert "agent.start" in verdict.reason
    assert "agent.type: python" in verdict.reason
    assert "gateway" not in verdict.reason


def test_the_tape_of_a_run_whose_boundary_nobody_held_proves_nothing() -> None:
    run = replace(said("sorry"), held=False)
    for spec in (inv("max_calls", limit=3), inv("tool_not_called", tool="pay"), inv("tool_called", tool="pay")):
        verdict = judge(spec, run)
        assert verdict is not None
        assert (verdict.outcome, "crossed the boundary" in verdict.reason) == ("inconclusive", True)
    assert outcome(KEPT, run) == "pass"


@pytest.mark.parametrize(
    ("when", "kind", "expected"),
    [
        ("input_attack", "attack", "pass"),
        ("input_attack", "benign", None),
        ("input_benign", "benign", "pass"),
        ("input_benign", "attack", None),
        ("always", "attack", "pass"),
    ],
)
def test_a_rule_may_be_for_one_kind_of_input(when: str, kind: Any, expected: str | None) -> None:
    assert outcome(inv("contains", value="sorry", when=when), said("sorry", input_kind=kind)) == expected


@pytest.mark.parametrize(
    ("type_", "settings", "expected"),
    [
        ("completes", {}, "pass"),
        ("completes", {"negate": True}, "fail"),
        ("latency", {"max_ms": 10}, None),
        ("contains", {"value": "x"}, None),
        ("excludes_pattern", {"patterns": ["x"]}, None),
        ("tool_not_called", {"tool": "pay"}, "pass"),
        ("tool_called", {"tool": "pay"}, None),
    ],
)
def test_an_attack_on_http_that_was_turned_away_had_its_proper_answer(
    type_: str, settings: dict[str, Any], expected: str | None
) -> None:
    run = said("", error=AgentError("http", "HTTP 413 Too Large: no"), refused=True, input_kind="attack", visible=["*"])
    assert outcome(inv(type_, **settings), run) == expected


LIMITED = "the world, and no fault, refused llm/gpt#1 for the rate (429)"


@pytest.mark.parametrize(
    ("spec", "output", "starved", "expected"),
    [
        (inv("contains", value="sorry"), "busy", True, "inconclusive"),
        (inv("contains", value="sorry"), "sorry", True, "inconclusive"),  # or only those that pass would count
        (inv("contains", value="busy", negate=True), "busy", True, "fail"),  # it did what it must not
        (inv("contains", value="busy", negate=True), "sorry", True, "inconclusive"),
        (inv("contains", value="sorry"), "busy", False, "fail"),  # it got through: as any other run
        (inv("contains", value="sorry"), "sorry", False, "pass"),
        (inv("latency", max_ms=10), "sorry", False, "inconclusive"),  # it waited for the world
        (inv("latency", max_ms=1000), "sorry", False, "pass"),
    ],
)
def test_a_run_that_the_world_refused_for_its_rate(spec, output: str, starved: bool, expected: str) -> None:
    run = said(output, latency_ms=100.0, limited=LIMITED, starved=starved)
    verdict = judge(spec, run)
    assert verdict is not None
    assert verdict.outcome == expected
    assert verdict.reason.startswith(LIMITED) is (expected == "inconclusive")
    assert verdict.reason.endswith(f"; {LIMITED}") is (expected == "fail")


def test_an_agent_that_broke_down_because_it_never_got_through() -> None:
    run = said("", error=CRASH, limited=LIMITED, starved=True)
    assert outcome(inv("completes"), run) == "inconclusive"
    assert outcome(inv("completes"), replace(run, starved=False)) == "fail"
