from dataclasses import replace

from flakestorm.engine.blamed import BlamedEvent, BlamedStep, Blaming, Counted, Jump, Repair
from flakestorm.reports.blamed import curve_lines, lines, picture

EVENTS = (BlamedEvent(1, "llm/gpt-4o#1", "model"), BlamedEvent(2, "tool/a\u202e#1", "fault", "error", "error"))
STEP = BlamedStep(
    EVENTS[1], Jump(0.9, 0.6, 1.0), Counted(2, 24), Counted(24, 24), (Repair("healthy reply", 1.0, 0.8, 1.0, 24),)
)
FOUND = Blaming(
    "step", "", "right", "a.tape", "d", events=EVENTS, steps=(STEP,), curve=((0, 0.0, 0.0, 0.2), (2, 1.0, 0.8, 1.0)),
    counts=((0, 0, 16), (2, 24, 24)), continuations=80, unjudged=2, budget=450, eps=0.3,
)  # fmt: skip


def test_every_number_has_its_count_and_interval() -> None:
    said = "\n".join(lines(FOUND))
    assert "24 of 24 times (the control), live 2 of 24: +0.90 [+0.60, +1.00]" in said
    assert "right 100% [80%, 100%] of 24 times" in said
    assert "80 continuations of at most 450, 2 of them could not be judged" in said
    assert "an injected fault, error" in said
    assert "\u202e" not in said


def test_the_curve_in_text() -> None:
    head, first, last = curve_lines(FOUND, ascii_only=True)
    assert "2 events" in head
    assert first.startswith("0  ........................  0.00 [0.00, 0.20] 0 of 16")
    assert last.isascii()
    assert "<- tool/a" in last
    assert list(curve_lines(replace(FOUND, curve=(), counts=()))) == []


def test_the_picture_holds_nothing_of_strangers() -> None:
    drawn = picture(FOUND)
    assert drawn.startswith("<svg")
    assert drawn.count("<circle") == 2
    assert "tool" not in drawn
    assert picture(replace(FOUND, curve=FOUND.curve[:1], counts=FOUND.counts[:1])) == ""


def test_where_none_is_named_the_range_is() -> None:
    said = "\n".join(lines(replace(FOUND, conclusion="cannot_tell", steps=(), within=(0, 2))))
    assert "half of the rise lies between events 0 and 2" in said
