"""Overlapping findings are thinned out."""

from flakestorm.patterns.finding import Finding, disjoint, order


def found(start: int, end: int, confidence: float) -> Finding:
    return Finding("pii", "x", "X", start, end, confidence)


def test_the_most_confident_stays_and_of_equals_the_longest() -> None:
    assert disjoint([found(0, 5, 0.5), found(3, 9, 0.9)]) == [found(3, 9, 0.9)]
    assert disjoint([found(0, 5, 0.5), found(0, 9, 0.5)]) == [found(0, 9, 0.5)]


def test_neighbours_both_stay_in_order() -> None:
    assert disjoint([found(5, 9, 0.9), found(0, 5, 0.1)]) == [found(0, 5, 0.1), found(5, 9, 0.9)]
    assert disjoint([]) == []


def test_an_order_is_that_of_the_fields_named() -> None:
    one, other, third = found(5, 9, 0.9), found(0, 5, 0.1), found(0, 4, 0.2)
    assert sorted([one, other, third], key=order("start", "end")) == [third, other, one]
    assert sorted([one, other, third], key=order("confidence", "end")) == [other, third, one]
