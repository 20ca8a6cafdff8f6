"""The judge: one invariant, one finished run, one verdict. Everything that holds for all types is decided here, once.

A check answers only its own question. Around it stand the rules that keep verdicts honest, in this order:

1. `when`: a rule for a situation that the scenario does not plan does not apply (None). Planned but not fired is
   inconclusive: the situation was not there to be judged.
2. An agent that could not be reached was not tested: inconclusive.
3. No output because of an agent error: rules that require something fail, with the agent's own error as the reason;
   rules that forbid something are inconclusive, for a dead agent forbears everything. Rules on the tape still count
   what is on it.
4. Rules on the tape of a run whose boundary nobody held are inconclusive.
5. A run whose calls the world itself refused for their rate, to the end, was made in a world that nobody planned: all
   its verdicts are inconclusive, but for what it did and must not. One that got through after waiting has no latency of
   its own, so a fail of `latency` is inconclusive.
6. A check that raises is inconclusive, never a pass.
7. `negate` swaps pass and fail (and, in 3, requiring and forbidding).
8. A request that was itself an attack and was turned away with a 4xx got its proper answer: `completes` passes, and
   rules about the output do not apply, because nobody asked for one.
9. Faults were planned and none fired: a pass proves nothing about them and becomes inconclusive. A fail stays a fail.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable
from pathlib import Path

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import (
    Check,
    Demand,
    RunView,
    applies,
    asked_of_model,
    compares,
    demands,
    invariants,
    means,
    on_both,
    on_tape,
    settings,
    vets,
)
from flakestorm.contracts.evidence import brief, plain
from flakestorm.contracts.turns import each_turn, faced
from flakestorm.core.registry import nearest
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.errors import ConfigError, Misuse

__all__ = [
    "applicable",
    "asks_model",
    "compared_with",
    "demand",
    "faced",
    "judge",
    "measured_by",
    "needs_baseline",
    "prepare",
    "wants_model",
]

_log = logging.getLogger(__name__)
_HOUSE = str(Path(__file__).parents[1])
_FRAMES = 4


def prepare(specs: Iterable[Invariant]) -> None:
    """Look over invariants before anything is run.

    Raises:
        Misuse: a type is not available in this version, or lacks a setting, or a setting makes no sense. The message
            names the invariant, and the file and line where it stands.
    """
    for spec in specs:
        try:
            _vet(spec)
        except Misuse as error:
            said = f"invariant {spec.id or spec.type!r}: {error}"
            if spec.origin.file is None:
                raise Misuse(said) from error
            raise ConfigError(said, file=spec.origin.file, line=spec.origin.line) from error


def _vet(spec: Invariant) -> None:
    _check_of(spec.type)
    missing = [field for field in settings.get(spec.type, ()) if getattr(spec, field) in (None, "", [])]
    if missing:
        wanted = " and ".join(repr(field.rstrip("_")) for field in missing)
        raise Misuse(f"type {spec.type!r} needs {wanted}")
    if spec.turn == "every" and (wants_model(spec) or measured_by(spec)):
        raise Misuse("a model is asked about one answer; set turn to a number or to last")
    if spec.turn not in (None, "last") and needs_baseline(spec):
        raise Misuse("it compares the last answer; leave turn out")
    if spec.type in vets:
        vets[spec.type](spec)


def judge(spec: Invariant, run: RunView) -> Verdict | None:
    """What this invariant says about this run, or None when it does not apply to it.

    Raises:
        Misuse: the invariant's type is not available in this version.
    """
    if spec.turn is None:
        return _judge(spec, run)
    return each_turn(spec, run, _judge)


def _judge(spec: Invariant, run: RunView) -> Verdict | None:
    check = _check_of(spec.type)
    if not _planned(spec, run):
        return None
    if run.error is not None and run.error.kind == "unreachable":
        return inconclusive(f"the agent could not be reached: {brief(run.error.message)}")
    if spec.type in on_tape and not run.held:
        return inconclusive("no call of the agent crossed the boundary, so its tape proves nothing")
    if run.refused:
        return _of_refused(spec, run, check)
    if idle := _not_in_force(spec, run):
        return inconclusive(f"{idle} did not fire, so this rule could not be judged; {_what_happened(run)}")
    verdict = _without_output(spec, run, check) if run.error is not None else _asked(spec, run, check)
    if run.limited:
        verdict = _limited(spec, run, verdict)
    if verdict.outcome == "pass" and run.chaos and not run.ledger.fired:
        return inconclusive(f"no planned fault fired; {_what_happened(run)} (otherwise: pass, {verdict.reason})")
    return verdict


def applicable(spec: Invariant, run: RunView) -> bool:
    """Whether this invariant is about the situation that the run's scenario plans."""
    _check_of(spec.type)
    return _planned(spec, run)


def asks_model(spec: Invariant, run: RunView) -> bool:
    """Whether judging this run by this invariant takes a model's opinion."""
    if not wants_model(spec) or run.error is not None or not _planned(spec, run):
        return False
    return not _not_in_force(spec, run)


def wants_model(spec: Invariant) -> bool:
    """Whether this invariant puts its question to a model; see `base.asked_of_model`."""
    _register(spec.type)
    return spec.type in asked_of_model


def measured_by(spec: Invariant) -> str:
    """What measures the likeness that this invariant wants in meaning: `semantic` or `model`; empty where none does."""
    _register(spec.type)
    return spec.measure if spec.type in means and spec.measure in ("semantic", "model") else ""


def compared_with(spec: Invariant, run: RunView) -> str | None:
    """The text whose meaning the output is to be compared with before this run is judged; None where there is none."""
    if not measured_by(spec) or run.error is not None or not _planned(spec, run) or _not_in_force(spec, run):
        return None
    return means[spec.type](spec, run)


def needs_baseline(spec: Invariant) -> bool:
    """Whether this invariant compares runs under chaos with one of the same prompt without; see `base.compares`."""
    _register(spec.type)
    return spec.type in compares and compares[spec.type](spec)


def demand(spec: Invariant) -> Demand:
    """What this invariant, negation included, asks of an output; see `base.demands`."""
    found = demands.get(spec.type, "requires")
    plain_demand = found(spec) if callable(found) else found
    if not spec.negate or plain_demand == "run":
        return plain_demand
    return "forbids" if plain_demand == "requires" else "requires"


def _register(name: str) -> None:
    """Import what registers a built-in type; others are looked over by `prepare`."""
    if name in invariants:
        invariants.get(name)


def _check_of(name: str) -> Check:
    if name in invariants:  # spares the search for plug-ins
        return invariants.get(name)
    known = invariants.names()
    if name in known:
        return invariants.get(name)
    close = nearest(name, known)
    guess = f"did you mean {close!r}? " if close else ""
    raise Misuse(
        f"invariant type {name!r} is not available in this version; {guess}available: {', '.join(sorted(known))}"
    )


def _planned(spec: Invariant, run: RunView) -> bool:
    """Whether the scenario plans the situation that `when`, or the type itself, is about."""
    if spec.type in applies and not applies[spec.type](spec, run):
        return False
    ledger = run.ledger
    match spec.when:
        case "always":
            return True
        case "no_chaos":
            return not run.chaos
        case "input_attack" | "input_benign":
            return spec.when == f"input_{run.input_kind}"
        case "any_chaos_active":
            return run.chaos
        case "llm_faults_active":
            return ledger.llms_planned > 0 or ledger.fired_in("llm")
        case "tool_faults_active":
            # A context attack hides in a tool's result or somewhere else; until it fires nobody knows where.
            undecided = ledger.planned > ledger.tools_planned + ledger.llms_planned and not ledger.fired_in("context")
            return ledger.tools_planned > 0 or _tool_fired(run) or undecided


def _not_in_force(spec: Invariant, run: RunView) -> str:
    """The faults that `when` waits for, where none of them fired; empty when the rule is in force."""
    match spec.when:
        case "tool_faults_active" if not _tool_fired(run):
            return "the planned tool faults"
        case "llm_faults_active" if not run.ledger.fired_in("llm"):
            return "the planned model faults"
        case "any_chaos_active" if not run.ledger.fired:
            return "the planned faults"
    return ""


def _tool_fired(run: RunView) -> bool:
    ledger = run.ledger
    in_results = any(f.family == "context" and f.site.kind in ("tool", "mcp", "http") for f in ledger.fired)
    return in_results or ledger.fired_in("tool", "mcp")


def _asked(spec: Invariant, run: RunView, check: Check) -> Verdict:
    """What the check says, negated where asked for; inconclusive where it crashed or gave no verdict."""
    try:
        verdict: object = check(spec, run)
    except Exception as error:  # a checker is anybody's code, and its crash must not pass for a verdict
        _log.debug("the check of invariant %s crashed", spec.id or spec.type, exc_info=True)
        return inconclusive(f"check crashed: {type(error).__name__}: {plain(str(error), 300)} ({_frames(error)})")
    if isinstance(verdict, bool):
        verdict = passed("the check returned True") if verdict else failed("the check returned False")
    if not isinstance(verdict, Verdict):
        return inconclusive(f"the check returned {plain(repr(verdict))}; it must return a Verdict or a bool")
    return verdict.negated() if spec.negate else verdict


def _frames(error: Exception) -> str:
    """Where it crashed, the innermost frame first; our own frames only where there are no others."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_HOUSE)] or frames[-1:]
    if frames[-1] not in theirs:
        theirs.append(frames[-1])
    return ", called ".join(f"in {f.name}, {f.filename}:{f.lineno}" for f in theirs[: -_FRAMES - 1 : -1])


def _of_refused(spec: Invariant, run: RunView, check: Check) -> Verdict | None:
    """What holds of a run whose request was an attack on HTTP and was turned away."""
    if spec.type in on_tape:
        return _asked(spec, run, check) if demand(spec) == "forbids" else None
    if demand(spec) != "run":
        return None
    if spec.type != "completes":
        return _asked(spec, run, check)
    verdict = passed(f"the agent refused the request, as it may: {brief(str(run.error))}")
    return verdict.negated() if spec.negate else verdict


def _limited(spec: Invariant, run: RunView, verdict: Verdict) -> Verdict:
    """The verdict, where the world itself refused calls of the run; a fail that stands says so, too."""
    if verdict.outcome == "inconclusive":
        return verdict
    otherwise = f"(otherwise: {verdict.outcome}, {verdict.reason})"
    if run.starved and not (verdict.outcome == "fail" and demand(spec) == "forbids"):
        return inconclusive(f"{run.limited}, and the agent never got through {otherwise}")
    if verdict.outcome == "fail" and spec.type == "latency":
        return inconclusive(f"{run.limited}, and the agent waited {otherwise}")
    return verdict if verdict.outcome == "pass" else failed(f"{verdict.reason}; {run.limited}")


def _without_output(spec: Invariant, run: RunView, check: Check) -> Verdict:
    wanted, error = demand(spec), brief(str(run.error))
    if wanted == "run":
        return _asked(spec, run, check)
    if spec.type in on_tape or spec.type in on_both:
        seen = _asked(spec, run, check)
        if wanted == "requires" and seen.outcome == "fail":
            return failed(f"{error}; {seen.reason}")
        if wanted == "forbids" and seen.outcome == "pass":
            return inconclusive(f"the agent did not finish: {error}; until then: {seen.reason}")
        return seen
    if wanted == "requires":
        return failed(error)
    return inconclusive(f"the agent gave no output to judge: {error}")


def _what_happened(run: RunView) -> str:
    """Which calls the run made, so that a fault that did not fire can be mended, and what kept those that were due."""
    if not run.exchanges:
        return (
            "nothing crossed the boundary: check that the agent calls anything, and that flakestorm launches it "
            "(agent.start) or runs it in process (agent.type: python; there, calls through httpx, aiohttp, requests or "
            "urllib3 are seen, urllib.request and subprocesses are not)"
        )
    from flakestorm.contracts.calls import tools_seen  # only what has calls needs those who read them

    others = dict.fromkeys(f"{x.kind}/{plain(x.name, 60)}" for x in run.exchanges if x.kind not in ("tool", "mcp"))
    more = f" and {len(others) - 10} more" if len(others) > 10 else ""
    idle = "".join(f"{f.mode} did nothing at {f.site}: {plain(f.detail)}; " for f in run.ledger.idle[:3])
    return f"{idle}{tools_seen(run)}" + (f"; also called: {', '.join(list(others)[:10])}{more}" if others else "")
