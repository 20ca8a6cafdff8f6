"""What is worked out beforehand is what would be worked out now."""

from __future__ import annotations

from flakestorm.patterns.disguise import WHOLE
from flakestorm.patterns.engine import text_of
from flakestorm.patterns.injection import injection_rows
from flakestorm.patterns.known import FILE, known, written
from flakestorm.patterns.prefilter import anchors

PATTERNS = [*(row["pattern"] for row in injection_rows()), *WHOLE]


def test_the_file_is_of_the_patterns_there_are() -> None:
    assert text_of(FILE) == written(PATTERNS), "write it anew: python -m scripts.anchors"


def test_what_the_file_says_is_what_the_patterns_need() -> None:
    said = [(index, kind, list(map(frozenset, clauses)), *most) for index, kind, clauses, *most in anchors(PATTERNS)]
    assert [(index, kind, list(clauses), *most) for index, kind, clauses, *most in known(PATTERNS)] == said


def test_of_other_patterns_it_is_worked_out_anew() -> None:
    other = [r"(?im)\bseldom\W+asked"]
    assert known(other) == list(anchors(other))
