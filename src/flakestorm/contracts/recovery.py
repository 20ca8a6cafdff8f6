"""Invariants on how an agent takes a failure: it says so (`acknowledges_failure`), or gets over it (`recovers`).

A failed call is made good when a later call of the same tool, or of any model where a model failed, is answered.
Whether an answer admits a failure is read from its words (`failures.py`); they are English, so an answer in another
language is judged by the rule's own `patterns` or `pattern`, and inconclusive without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.calls import ToolCall, calls_of, sites, tools_seen
from flakestorm.contracts.evidence import plain, quote, quote_around
from flakestorm.contracts.failures import BREAKS, ENGLISH, admission, call_failed
from flakestorm.contracts.output import EXCLUDES_FLAGS, REGEX_FLAGS, SEARCH_CHARS, vet_patterns
from flakestorm.contracts.searching import search
from flakestorm.core.ledger import Firing
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed

__all__ = ["outstanding"]


def _something_failed(spec: Invariant, run: RunView) -> bool:
    """There is something to admit, or a tool fault was planned that should have made it."""
    if run.ledger.tools_planned and not run.ledger.fired_in("tool", "mcp"):
        return True
    return any(call.failed for call in _calls(spec, run))


@built_in("acknowledges_failure", "requires", evidence="output by tape", vet=vet_patterns, where=_something_failed)
def acknowledges_failure(spec: Invariant, run: RunView) -> Verdict:
    """A tool that failed, and was not made good by a later call, is admitted in the answer.

    Of any `tool`, or of those that this name or glob means. `patterns` are regular expressions of which one must match
    the answer instead of the built-in words. Does not apply to a run in which no tool failed.
    """
    calls = _calls(spec, run)
    broken = outstanding(calls)
    if not broken:
        if any(call.failed for call in calls):
            return passed("every tool that failed was called again and answered")
        return inconclusive(f"no tool failed; {tools_seen(run)}")
    output = run.output[:SEARCH_CHARS]
    what = f"{', '.join(plain(call.tool, 60) for call in broken)} failed ({sites(broken)}: {quote(broken[0].text, 60)})"
    if spec.patterns:
        found = next(filter(None, (search(p, EXCLUDES_FLAGS, output) for p in spec.patterns)), None)
    else:
        admitted = admission(output)
        found = None if admitted is None else admitted.span()
    if found is not None:
        return passed(f"{what}, and the answer says so: {quote_around(output, *found)}")
    if not spec.patterns and (doubt := _foreign(output, "patterns")):
        return inconclusive(f"{what}; {doubt}")
    return failed(f"{what}, and the answer does not say so: {quote(output)}")


def _transient(_spec: Invariant, run: RunView) -> bool:
    return bool(run.transient)


@built_in("recovers", "requires", evidence="output by tape", vet=vet_patterns, where=_transient)
def recovers(spec: Invariant, run: RunView) -> Verdict:
    """After a transient fault the task still succeeds. Applies to scenarios that plan a fault which does not last: one
    with `times`, `calls`, `site` or a probability below 1, or of mode `flap`.

    With `pattern`, an answer that matches it is a success and any other is not. Without, the task succeeded if the
    agent answered, every call that such a fault broke was made good by a later one, and the answer speaks of no
    failure. An answer that does so although every call was made good is inconclusive, for it may only tell what
    happened on the way.
    """
    fired = [firing for firing in run.ledger.fired if firing.fault in run.transient]
    if not fired:
        return inconclusive("no transient fault fired, so there was nothing to recover from")
    output = run.output[:SEARCH_CHARS]
    where = ", ".join(f"{firing.mode} at {firing.site}" for firing in fired[:3])
    if spec.pattern is not None:
        matched = search(spec.pattern, REGEX_FLAGS, output)
        if matched is None:
            return failed(f"after {where}, the answer does not match {plain(spec.pattern)}: {quote(output)}")
        return passed(f"after {where}, the answer matches: {quote_around(output, *matched)}")
    if lost := next((f for f in fired if f.mode in BREAKS and not _made_good(f, run)), None):
        return failed(f"{lost.mode} at {lost.site} did not last, but no later call of {lost.site.name} was answered")
    if doubt := _foreign(output, "pattern"):
        return inconclusive(f"every call that {where} broke was made good; {doubt}")
    if (found := admission(output)) is None:
        return passed(f"every call that {where} broke was made good: {quote(output)}")
    if run.baseline is not None and admission(run.baseline):
        return inconclusive(f"the task does not succeed without chaos either: {quote(run.baseline)}")
    return inconclusive(
        f"every call that {where} broke was made good, yet the answer speaks of a failure: "
        f"{quote_around(output, *found.span())}; say in 'pattern' what a success looks like"
    )


def outstanding(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The last call of each tool whose last call failed."""
    last = {call.tool: call for call in calls}
    return [call for call in last.values() if call.failed]


def _calls(spec: Invariant, run: RunView) -> Sequence[ToolCall]:
    return calls_of(spec.tool or "*", run)


def _made_good(firing: Firing, run: RunView) -> bool:
    """Whether something was answered after this call that stands in for it."""
    at = firing.via or firing.site
    place = next((n for n, x in enumerate(run.exchanges) if x.site == at), None)
    if place is None:
        return False
    if firing.site.kind in ("llm", "http"):
        later = run.exchanges[place + 1 :]
        same = (x for x in later if x.kind == firing.site.kind and (x.kind == "llm" or x.name == firing.site.name))
        return any(not call_failed(x) for x in same)
    calls = [call for call in calls_of("*", run) if any(fnmatchcase(firing.site.name, name) for name in call.names)]
    since = place if firing.via else place + 1  # told of a failure, a model asks again in the same exchange
    return any(call.failed is False and call.n >= since for call in calls)


def _foreign(output: str, setting: str) -> str:
    """Why the words of an answer say nothing to us; empty where they do."""
    if ENGLISH.search(output) or not re.search(r"[^\W\d_]{2}", output):
        return ""
    return f"the answer is not in English, so write in {setting!r} what it must say: {quote(output)}"
