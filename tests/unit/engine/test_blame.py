from collections.abc import Callable

import pytest

from flakestorm.core.choices import Choices
from flakestorm.engine.blame import Finding, Seen, Terms, search


def found(n: int, see: Callable[[int], Seen], terms: Terms | None = None) -> Finding:
    seeking = search(n, terms)
    wanted = next(seeking)
    while True:
        try:
            wanted = seeking.send({k: [see(k) for _ in range(times)] for k, times in wanted.items()})
        except StopIteration as end:
            return end.value


def noisy(curve: list[float], seed: int = 1) -> Callable[[int], Seen]:
    draw = Choices(seed).stream("blame")
    return lambda k: Seen(draw.random() < curve[k])


def test_a_step_is_named_with_its_jump() -> None:
    finding = found(10, noisy([0.1] * 4 + [1.0] * 7))
    assert finding.conclusion == "step"
    (cause,) = finding.causes
    assert cause.k == 4
    assert cause.before.judged == cause.after.judged == 24
    assert cause.jump.low < 0.9 < cause.jump.high
    assert finding.within == (3, 4)
    assert finding.spent == sum(point.judged for point in finding.curve)


def test_what_fails_with_nothing_pinned_is_systemic() -> None:
    finding = found(10, lambda _: Seen(True))
    assert (finding.conclusion, finding.causes, finding.spent) == ("systemic", (), 18)


def test_a_slow_rise_has_no_single_step() -> None:
    finding = found(40, noisy([0.3 + 0.7 * k / 40 for k in range(41)]))
    assert finding.conclusion in ("no_single_step", "cannot_tell")
    assert finding.causes == ()
    assert finding.why


def test_a_step_with_too_small_a_share_is_rarely_blamed_however_many_are_tried() -> None:
    """Every step adds 0.05, which is not enough to be blamed; three are put to the test, each of them twice."""
    curve = [0.1 + 0.9 * k / 18 for k in range(19)]
    blamed = sum(bool(found(18, noisy(curve, seed)).causes) for seed in range(300))
    assert blamed <= 0.05 * 300


def test_a_replay_that_does_not_fail_again_cannot_be_told() -> None:
    finding = found(10, lambda _: Seen(False))
    assert (finding.conclusion, finding.spent) == ("cannot_tell", 2)
    assert "0 of 2 replays" in finding.why


def test_where_there_is_no_world_little_is_spent() -> None:
    finding = found(10, lambda k: Seen(True if k == 10 else None))
    assert (finding.conclusion, finding.spent, finding.unjudged) == ("cannot_tell", 4, 2)


def test_the_budget_is_kept() -> None:
    finding = found(1000, noisy([0.5 + k / 2000 for k in range(1001)]), Terms(budget=60))
    assert finding.conclusion == "cannot_tell"
    assert finding.spent <= 60
    assert "budget of 60" in finding.why


def test_what_was_interrupted_is_said() -> None:
    seeking = search(10)
    next(seeking)
    with pytest.raises(StopIteration) as end:
        seeking.send({10: [Seen(True)]})
    assert "ended before" in end.value.value.why


def test_two_causes_are_both_named() -> None:
    finding = found(30, noisy([0.05] * 8 + [0.5] * 12 + [1.0] * 11, seed=3))
    assert {cause.k for cause in finding.causes} == {8, 20}


def test_one_event_is_enough() -> None:
    (cause,) = found(1, lambda k: Seen(k == 1, str(k))).causes
    assert cause.k == 1
    with pytest.raises(ValueError, match="no event"):
        found(0, lambda _: Seen(True))
