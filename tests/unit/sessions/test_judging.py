"""Which verdicts a replayed run can bear."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flakestorm.config.model import Invariant, Scenario
from flakestorm.config.replays import ToolResponse
from flakestorm.contracts.base import RunView
from flakestorm.contracts.matrix import prepare
from flakestorm.core.call import Call
from flakestorm.core.verdict import Verdict, failed, passed
from flakestorm.engine.events import RunResult
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import Trial
from flakestorm.sessions.judging import reviewed, viewed
from flakestorm.sessions.serving import Serving

SAID = Invariant(type="contains", id="said", value="x")
KEEPS_OFF = Invariant(type="tool_not_called", id="keeps-off", tool="search")


def judged(*verdicts: tuple[Invariant, Verdict]) -> Judged:
    run = RunResult("r-1", "s", 0, 1, "in", "out", None, 1.0, 0, (), (), {}, "", "", seen=("other",))
    return Judged(Trial("r-1", Scenario(name="s"), 0, "in", 1, ()), run, RunView("in"), verdicts)


def served(*responses: ToolResponse, calls: int = 1, known: tuple[str, ...] = ()) -> Serving:
    serving = Serving(responses)
    serving.known.update(known)
    for _ in range(calls):
        flow = serving(Call("GET", "http://t/", kind="tool", name="search"))
        assert not isinstance(flow, Call)
        with pytest.raises(StopIteration):
            next(flow)
    return serving


FOUND, BOOKED = ToolResponse(tool="search", response="f"), ToolResponse(tool="book", response="b")


@pytest.mark.parametrize(
    ("serving", "outcome", "words"),
    [
        (served(FOUND), "pass", "ok"),
        (served(calls=0), "pass", "ok"),
        (served(FOUND, calls=0), "inconclusive", "search was never called"),
        (served(FOUND, calls=2), "inconclusive", "search was called 2 times and the session holds 1"),
        (served(FOUND, BOOKED), "inconclusive", "the session names book, a tool that the agent neither called"),
        (served(FOUND, BOOKED, known=("book",)), "pass", "ok"),
    ],
)
def test_a_pass_stands_only_where_the_incident_was_met(serving: Serving, outcome: str, words: str) -> None:
    ((_, verdict),) = reviewed(judged((SAID, passed("ok"))), serving, ()).verdicts
    assert (verdict.outcome, words in verdict.reason) == (outcome, True)


def test_a_tool_that_the_project_knows_may_be_left_uncalled_and_that_is_remarked() -> None:
    found = reviewed(judged((SAID, passed("ok"))), served(FOUND, BOOKED), ("b*",))
    assert found.verdicts[0][1].outcome == "pass"
    assert found.run.remarks == ("book, of which the session holds a reply, was not called",)


def test_an_agent_that_nobody_holds_is_told_how_to_be_held() -> None:
    unheld = replace(judged((SAID, passed("ok"))), view=RunView("in", held=False))
    ((_, verdict),) = reviewed(unheld, served(FOUND, calls=0), ()).verdicts
    assert (verdict.outcome, "flakestorm gateway" in verdict.reason) == ("inconclusive", True)


def test_a_rule_about_the_tool_itself_decides() -> None:
    prepare([KEEPS_OFF])  # as before every command; a type is known once it was asked for
    found = reviewed(judged((KEEPS_OFF, passed("not called")), (SAID, passed("ok"))), served(FOUND, calls=0), ())
    assert [verdict.outcome for _, verdict in found.verdicts] == ["pass", "pass"]


def test_a_fail_is_always_a_fail() -> None:
    found = reviewed(judged((SAID, failed("no x"))), served(FOUND, calls=2), ())
    assert found.verdicts[0][1].outcome == "fail"
    assert found.verdicts[0][1].reason.startswith("no x (search was called 2 times")


def test_recorded_failures_count_as_faults_once_they_are_met() -> None:
    calm = RunView("in")
    assert viewed(calm, served(FOUND)) is calm
    down = ToolResponse(tool="search", response="no", status=503)
    before, after = viewed(calm, served(down, calls=0)), viewed(calm, served(down))
    assert (before.chaos, before.ledger.tools_planned, before.ledger.fired) == (True, 1, [])
    (firing,) = after.ledger.fired
    assert (str(firing.site), firing.mode, firing.detail) == ("tool/search#1", "recorded", "503 no")
    assert calm.ledger.fired == []
