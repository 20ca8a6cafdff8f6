"""What a replayed run proves: the incident it met, and whether a pass may stand.

An agent that never met the incident did not get past it. A pass is therefore inconclusive where no recorded reply was
asked for, where the session names a tool that nobody has heard of, or where the replies ran out; a fail stays a fail.
An agent that, having met part of the incident, decides not to call the next tool has done just what a fix may do, and
is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from flakestorm.config.invariants import Invariant
from flakestorm.contracts.base import RunView, on_tape
from flakestorm.contracts.evidence import plain
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.verdict import Verdict, inconclusive
from flakestorm.engine.judged import Judged
from flakestorm.engine.score import UNHELD
from flakestorm.sessions.replies import breaks, text_of
from flakestorm.sessions.serving import Served, Serving

__all__ = ["reviewed", "viewed"]

RECORDED = "recorded"
"""What a failure is called that the session itself holds."""


def viewed(view: RunView, serving: Serving) -> RunView:
    """The run with the failures that the session brought counted as faults, so that rules with a `when` apply."""
    broken = [response for response in serving.responses if breaks(response)]
    if not broken:
        return view
    was = view.ledger
    met = [_firing(each) for each in serving.served if breaks(each.response)]
    ledger = Ledger(
        planned=was.planned + len(broken),
        tools_planned=was.tools_planned + len(broken),
        llms_planned=was.llms_planned,
        fired=[*was.fired, *met],
        masked=was.masked,
        matched=was.matched,
        idle=was.idle,
        hit=was.hit,
        canaries=was.canaries,
    )
    return replace(view, chaos=True, ledger=ledger)


def reviewed(judged: Judged, serving: Serving, known: Sequence[str]) -> Judged:
    """The run with the verdicts that it can bear, and with remarks on what else happened.

    Args:
        judged: the run as its rules see it.
        serving: what came of its recorded replies.
        known: names (globs) of tools that exist in any case.
    """
    doubt = _doubt(judged, serving, known)
    ran_out = "; ".join(
        f"{tool} was called {serving.calls[tool]} times and the session holds {held} of its replies"
        for tool, held in serving.short.items()
    )
    verdicts = tuple((i, _ruled(v, doubt, ran_out)) for i, v in judged.verdicts)
    remarks = [
        f"{tool} ran inside the agent, where nothing can keep it from running; its result was replaced by the recorded "
        "one on its way to the model. If it is a service, name its URL in boundary.tools, and it is not called at all"
        for tool in dict.fromkeys(each.site.name for each in serving.served if each.where == "result")
    ]
    remarks += [f"{tool}, of which the session holds a reply, was not called" for tool in serving.uncalled]
    run = replace(judged.run, remarks=(*judged.run.remarks, *remarks)) if remarks else judged.run
    return replace(judged, run=run, verdicts=verdicts)


def _ruled(verdict: Verdict, doubt: str, ran_out: str) -> Verdict:
    if verdict.outcome == "pass" and (doubt or ran_out):
        return inconclusive(f"{doubt or ran_out} (otherwise: pass{verdict.reason and ', '}{verdict.reason})")
    if verdict.outcome == "fail" and ran_out:
        return replace(verdict, reason=f"{verdict.reason} ({ran_out})")
    return verdict


def _doubt(judged: Judged, serving: Serving, known: Sequence[str]) -> str:
    """Why the run did not meet the incident; empty if it did."""
    spoken_of = [i for i, verdict in judged.verdicts if verdict.outcome == "pass" and i.type in on_tape]
    left = [tool for tool in serving.uncalled if not any(_names(invariant, tool) for invariant in spoken_of)]
    if not left:
        return ""
    seen = f"tools seen: {', '.join(plain(name, 60) for name in judged.run.seen) or 'none'}"
    if not any(serving.calls.values()) and len(left) == len(serving.tools):
        names = ", ".join(left)
        if not judged.view.held:
            return f"no recorded reply was asked for ({names}); {UNHELD}"
        return f"no recorded reply was asked for: {names} was never called, so the incident was not met; {seen}"
    strange = [t for t in left if t not in serving.known and not any(fnmatchcase(t, name) for name in known)]
    if strange:
        names = ", ".join(strange)
        return f"the session names {names}, a tool that the agent neither called nor offered its model; {seen}"
    return ""


def _names(invariant: Invariant, tool: str) -> bool:
    return bool(invariant.tool) and fnmatchcase(tool, str(invariant.tool))


def _firing(served: Served) -> Firing:
    response = served.response
    status = "" if response.status is None else f"{response.status} "
    return Firing(served.site, response.fault or RECORDED, "tool", plain(f"{status}{text_of(response)}", 80))
