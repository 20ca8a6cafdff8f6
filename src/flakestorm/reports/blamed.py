"""What `blame` found out, for people: the steps, what helps, and the value curve as bars of text or as a picture."""

from __future__ import annotations

from collections.abc import Iterator

from flakestorm.engine.blamed import BlamedEvent, BlamedStep, Blaming, Repair
from flakestorm.reports.text import counted, one_line

__all__ = ["TITLE", "curve_lines", "lines", "picture"]

TITLE = {"step": "STEP", "no_single_step": "NO SINGLE STEP", "systemic": "SYSTEMIC", "cannot_tell": "CANNOT TELL"}

_BAR = 24
_REPAIR = {
    "resample": "done live again (resample)",
    "healthy reply": "with what the world had said before the fault (healthy reply)",
}


def lines(found: Blaming) -> Iterator[str]:
    """What was found out, without the curve."""
    yield f"the run breaks {one_line(found.invariant, 80)}"
    for step in found.steps:
        yield from _step(step)
    if found.conclusion != "step" and found.within is not None and found.within[1] - found.within[0] > 1:
        after, to = found.within
        first, last = _place(found, after + 1), _place(found, to)
        yield f"half of the rise lies between events {after} and {to}: {first} to {last}"
    yield _precision(found)


def curve_lines(found: Blaming, *, ascii_only: bool = False) -> Iterator[str]:
    """The rate of failure by how much is as recorded, one line for each point that was measured."""
    if not found.curve:
        return
    full, rest = ("#", ".") if ascii_only else ("█", "░")
    arrow = "<-" if ascii_only else "←"
    blamed = {step.event.k for step in found.steps}
    wide = len(str(found.curve[-1][0]))
    yield f"{'k':>{wide}}  how often it fails with the first k of {counted(len(found.events), 'event')} as recorded"
    for (k, value, low, high), (_, failed, judged) in zip(found.curve, found.counts, strict=True):
        done = round(value * _BAR)
        mark = f"  {arrow} {_place(found, k)}" if k in blamed else ""
        counts = f"{failed} of {judged}"
        yield f"{k:>{wide}}  {full * done}{rest * (_BAR - done)}  {value:.2f} [{low:.2f}, {high:.2f}] {counts}{mark}"


def picture(found: Blaming) -> str:
    """The curve as inline SVG: numbers and our own words only, so it needs no escaping."""
    if len(found.curve) < 2:
        return ""
    last = max(found.curve[-1][0], 1)

    def across(k: float) -> str:
        return f"{40 + 540 * k / last:.1f}"

    def up(value: float) -> str:
        return f"{160 - 140 * value:.1f}"

    parts = ['<svg class="curve" viewBox="0 0 600 200" role="img" aria-label="value curve" data-testid="curve">']
    for value in (0.0, 0.5, 1.0):
        parts.append(f'<line class="rule" x1="40" x2="580" y1="{up(value)}" y2="{up(value)}"/>')
        parts.append(f'<text x="34" y="{float(up(value)) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for step in found.steps:
        left, right = across(step.event.k - 1), across(step.event.k)
        wide = max(2.0, float(right) - float(left))
        parts.append(f'<rect class="jump" x="{left}" y="{up(1)}" width="{wide:.1f}" height="140"/>')
    for k, _, low, high in found.curve:
        parts.append(f'<line class="interval" x1="{across(k)}" x2="{across(k)}" y1="{up(low)}" y2="{up(high)}"/>')
    points = " ".join(f"{across(k)},{up(value)}" for k, value, _, _ in found.curve)
    parts.append(f'<polyline class="line" points="{points}"/>')
    for (k, value, _, _), (_, failed, judged) in zip(found.curve, found.counts, strict=True):
        title = f"<title>first {k} as recorded: {failed} of {judged} fail</title>"
        parts.append(f'<circle class="point" cx="{across(k)}" cy="{up(value)}" r="3">{title}</circle>')
    named = sorted({0, last, *(step.event.k for step in found.steps)})
    parts += [f'<text x="{across(k)}" y="178" text-anchor="middle">{k}</text>' for k in named]
    parts.append('<text x="310" y="195" text-anchor="middle">events as recorded</text></svg>')
    return "".join(parts)


def _step(step: BlamedStep) -> Iterator[str]:
    event, jump = step.event, step.jump
    yield f"{one_line(event.site, 120)}: {_what(event)}, event {event.k}"
    yield (
        f"  as recorded it fails {step.after.failed} of {step.after.judged} times (the control), live "
        f"{step.before.failed} of {step.before.judged}: {jump.value:+.2f} [{jump.low:+.2f}, {jump.high:+.2f}]"
    )
    for repair in step.repairs:
        yield f"  repair: {_repair(repair)}"


def _what(event: BlamedEvent) -> str:
    if event.kind == "fault":
        return f"an injected fault, {event.fault}" if event.fault else f"a fault: it looks like {event.looks_like}"
    said = {"tool": "what the tool said", "model": "what the model decided", "input": "the input"}[event.kind]
    return f"{said} (it looks like {event.looks_like})" if event.looks_like else said


def _repair(repair: Repair) -> str:
    how = _REPAIR.get(repair.how, one_line(repair.how, 80))
    return f"{how}, it is right {repair.value:.0%} [{repair.low:.0%}, {repair.high:.0%}] of {repair.judged} times"


def _precision(found: Blaming) -> str:
    made = f"{counted(found.continuations, 'continuation')} of at most {found.budget}"
    void = f", {found.unjudged} of them could not be judged" if found.unjudged else ""
    alike = "; equal continuations never differed" if found.steady else ""
    return f"{made}{void}; a step that adds less than {found.eps:.0%} is not looked for{alike}"


def _place(found: Blaming, k: int) -> str:
    return one_line(found.events[k - 1].site, 120) if 0 < k <= len(found.events) else "the end"
