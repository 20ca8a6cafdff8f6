"""Invariants that compare what was said with what should have been said: `similarity` and `behavior_unchanged`.

Likeness is measured on words: the better of the two edit ratios of the texts as they stand and with their words in
alphabetical order (rapidfuzz), so that other word order and small changes of wording count little. Of pairs tried, the
same said in other words came to .79 and more, unrelated answers to .55 and less.

What edit ratios cannot see is that one small word turns an answer round, or that one figure is another. So two texts of
which one denies and the other does not, and two that state different numbers, dates or times, count as at most .5
alike. Ids are left out of that, for many are made anew in every run. Texts that mean the same in quite different words
are recognised only where `measure` has the engine measure their meaning before the run is judged.
"""

from __future__ import annotations

import re

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in, means
from flakestorm.contracts.evidence import quote
from flakestorm.contracts.facts import facts
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.errors import Misuse

__all__ = ["AUTO", "COMPARED_CHARS", "likeness"]

AUTO = "auto"
"""The baseline that means: what the agent said to the same prompt without chaos."""

THRESHOLD = 0.8
UNCHANGED = 0.75
AT_ODDS = 0.5
"""How alike texts are at most that contradict each other."""

COMPARED_CHARS = 20_000
"""How much of each text is compared: the time it takes grows with the square."""

_NOT = re.compile(
    r"\b(?:not|no|never|none|nothing|cannot|without|neither|nor|unable|nobody|failed)\b|n['’]t\b", re.IGNORECASE
)


def likeness(one: str, other: str) -> tuple[float, str]:
    """How alike two texts are, 0 to 1, and why it is no more than `AT_ODDS`, if that is so."""
    from rapidfuzz import fuzz, utils  # few contracts compare texts

    one, other = one[:COMPARED_CHARS], other[:COMPARED_CHARS]
    left, right = utils.default_process(one), utils.default_process(other)
    score = max(fuzz.ratio(left, right), fuzz.token_sort_ratio(left, right)) / 100
    odds = _at_odds(one, other)
    return (min(score, AT_ODDS), odds) if odds else (score, "")


def _at_odds(one: str, other: str) -> str:
    if bool(_NOT.search(one)) != bool(_NOT.search(other)):
        return "one of them denies and the other does not"
    for kind in ("number", "date", "time"):
        left, right = ({f.value: f.text for f in facts(text) if f.kind == kind} for text in (one, other))
        only_left, only_right = left.keys() - right.keys(), right.keys() - left.keys()
        if only_left and only_right:
            return f"one says {left[min(only_left)]}, the other {right[min(only_right)]}"
    return ""


@built_in("similarity", "requires", needs=("expected",))
def similarity(spec: Invariant, run: RunView) -> Verdict:
    """The output is at least `threshold` (.8) alike to `expected`; how that is measured, the module says."""
    threshold = THRESHOLD if spec.threshold is None else spec.threshold
    return _compared(spec, run, spec.expected or "", threshold, "the expected text")


def _automatic(spec: Invariant) -> bool:
    return spec.baseline in (None, AUTO)


def _chaos_or_text(spec: Invariant, run: RunView) -> bool:
    return run.chaos or run.mutated or not _automatic(spec)


def _vet_baseline(spec: Invariant) -> None:
    if spec.baseline is not None and not spec.baseline.strip():
        raise Misuse("'baseline' is empty; write auto or the text to compare with")


@built_in("behavior_unchanged", "requires", vet=_vet_baseline, where=_chaos_or_text, against=_automatic)
def behavior_unchanged(spec: Invariant, run: RunView) -> Verdict:
    """The output is at least `similarity_threshold` (.75) alike to what the agent says without chaos.

    `baseline: auto` (the default) compares with a run of the same golden prompt without chaos, which is made where the
    matrix has none; the rule applies to mutations and to scenarios with chaos then. Any other `baseline` is the text to
    compare with. Without a baseline the verdict is inconclusive.
    """
    threshold = UNCHANGED if spec.similarity_threshold is None else spec.similarity_threshold
    baseline = _baseline(spec, run)
    if baseline is None or not baseline.strip():
        return inconclusive("there is no baseline: no run of this prompt without chaos gave an output")
    return _compared(spec, run, baseline, threshold, "the baseline")


def _baseline(spec: Invariant, run: RunView) -> str | None:
    return run.baseline if _automatic(spec) else spec.baseline


means["similarity"] = lambda spec, _: spec.expected
means["behavior_unchanged"] = _baseline


def _compared(spec: Invariant, run: RunView, wanted: str, threshold: float, what: str) -> Verdict:
    output = run.output
    if spec.measure in (None, "words"):
        score, odds = likeness(output, wanted)
    else:
        found = run.alike.get(str(spec.id), "nobody measured it")
        if isinstance(found, str):
            return inconclusive(f"how alike it is to {what} in meaning is not known: {found}")
        odds = _at_odds(output[:COMPARED_CHARS], wanted[:COMPARED_CHARS])
        score = min(found, AT_ODDS) if odds else found
    cut = f", of the first {COMPARED_CHARS:,} characters" if max(len(output), len(wanted)) > COMPARED_CHARS else ""
    said = f"{score:.2f} alike to {what}{cut}" + (f", because {odds}" if odds else "")
    if score >= threshold:
        return passed(f"{said}; at least {threshold:g} wanted")
    return failed(f"{said}; at least {threshold:g} wanted: {quote(output)}, not {quote(wanted)}")
