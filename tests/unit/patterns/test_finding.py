"""Overlapping findings are thinned out."""

from flakestorm.patterns.finding import Finding, disjoint


def found(start: int, end: int, confidence: float) -> Finding:
    return Finding("pii", "x", "X", start, end, confidence)


def test_the_most_confident_stays_and_of_equals_the_longest() -> None:
    assert disjoint([found(0, 5, 0.5), found(3, 9, 0.9)]) == [found(3, 9, 0.9)]
    assert disjoint([found(0, 5, 0.5), found(0, 9, 0.5)]) == [found(0, 9, 0.5)]


def test_neighbours_both_stay_in_order() -> None:
    assert disjoint([found(5, 9, 0.9), found(0, 5, 0.1)]) == [found(0, 5, 0.1), found(5, 9, 0.9)]
    assert disjoint([]) == []
