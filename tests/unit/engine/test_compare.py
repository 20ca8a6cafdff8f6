import pytest

from compare_support import comparison_of, pair_of, run_result
from flakestorm.engine.compare import Key, Pair, Side, Tally, pair, rule
from flakestorm.engine.events import CellResult

KEY = Key("calm", "a", 1)


@pytest.mark.parametrize(
    ("base", "head", "how"),
    [
        ([True, True], [True, True], "tied"),
        ([True, True], [True, False], "lost"),
        ([False, True], [True, True], "won"),
        ([False, True], [False, False], "lost"),  # what is newly broken counts, although the run failed before
        ([False, True], [True, False], "tied"),
        ([None, True], [False, True], "tied"),  # an invariant counts where both can be judged by it
        ([None], [True], "unjudged"),
        ([], [], "unjudged"),
    ],
)
def test_how_a_pair_comes_out(base, head, how) -> None:
    assert pair_of(base, head).how == how


def test_severity_says_what_weighs_more() -> None:
    def side(grave: str, light: str) -> Side:
        return Side(run_result(), {"grave": ("critical", grave), "light": ("low", light)})  # type: ignore[dict-item]

    found = pair(KEY, side("pass", "fail"), side("fail", "pass"))
    assert (found.how, found.newly, found.mended) == ("lost", ("grave",), ("light",))


def test_a_side_is_a_run_and_its_cells() -> None:
    cell = CellResult("calm", "greets", "high", 0, 1, "fail", "no", "r-0001")
    assert Side.of(run_result(), [cell]).verdicts == {"greets": ("high", "fail")}


LOST, WON, TIED = pair_of([True], [False]), pair_of([False], [True]), pair_of([True], [True])


def test_enough_lost_pairs_are_a_regression() -> None:
    assert rule([LOST] * 4, alpha=0.05, delta=0.1).conclusion == "inconclusive"
    found = rule([LOST] * 7, alpha=0.05, delta=0.1)
    assert (found.conclusion, found.tally) == ("regression", Tally(lost=7))
    assert found.regression >= 20 > found.improvement


def test_enough_ties_or_wins_are_none() -> None:
    better = rule([WON] * 7 + [TIED], alpha=0.05, delta=0.1)
    assert (better.conclusion, better.headline.split(":")[0]) == ("no regression", "HEAD is better than BASE")
    few, many = (rule([TIED] * n, alpha=0.05, delta=0.1) for n in (10, 60))
    assert (few.conclusion, many.conclusion) == ("inconclusive", "no regression")
    assert few.needed is not None
    assert rule([TIED] * (10 + few.needed), alpha=0.05, delta=0.1).conclusion == "no regression"
    assert f"about {few.needed} more pairs" in few.headline


def test_nothing_judged_is_said() -> None:
    found = rule([pair_of([None], [None])], alpha=0.05, delta=0.1)
    assert (found.conclusion, found.rates, found.invariants) == ("inconclusive", None, ())
    assert found.headline.startswith("no pair could be judged")


def test_an_invariant_that_got_worse_is_not_hidden_by_others_that_got_better() -> None:
    pairs = [pair_of([True, False, True], [False, True, True])] * 12
    found = rule(pairs, alpha=0.05, delta=0.1)
    assert (found.conclusion, found.tally.tied) == ("regression", 12)
    assert "HEAD breaks i0" in found.headline
    worse, better, same = found.invariants
    assert worse.adjusted == pytest.approx(6 * worse.p)  # half of alpha is for the whole, the rest for three
    assert worse.adjusted <= 0.05
    assert (better.tally, same.tally) == (Tally(won=12), Tally(tied=12))


def test_many_questions_share_one_chance_of_a_false_alarm() -> None:
    """Seven lost pairs say enough where nothing else was asked. Where ten invariants could have said so too, and none
    did, they are weighed against that: the evidence is the mean, whose expectation is at most 1 for any dependence."""

    def broken(at: int) -> Pair:
        return pair_of([True] * 10, [n != at for n in range(10)])

    alone, many = rule([LOST] * 7, alpha=0.05, delta=0.1), rule([broken(at) for at in range(7)], alpha=0.05, delta=0.1)
    assert (alone.conclusion, many.conclusion) == ("regression", "inconclusive")
    each = sum(line.evidence for line in many.invariants) / 10
    assert many.regression == pytest.approx((alone.regression + each) / 2)
    same = rule([broken(3)] * 7, alpha=0.05, delta=0.1)  # they agree on one of them
    assert (same.conclusion, same.headline.split(":")[0]) == (
        "inconclusive",
        "too few pairs to tell whether HEAD is worse by 0.1",
    )
    assert rule([broken(3)] * 8, alpha=0.05, delta=0.1).conclusion == "regression"


def test_a_difference_of_rates_lies_between_them() -> None:
    found = rule([LOST, TIED], alpha=0.05, delta=0.1).difference
    assert found is not None
    assert (found.value, found.low, found.high) == (-0.5, -1.0, 1.0)


def test_measures_are_paired_and_leave_out_what_is_not_known() -> None:
    def made(base: float, head: float, tokens: int | None = None):
        sides = (Side(run_result(latency_ms=ms, tokens=tokens), {"i": ("low", "pass")}) for ms in (base, head))
        return pair(KEY, *sides)

    found = rule([made(10, 12), made(20, 22), made(30, 33, tokens=5)], alpha=0.05, delta=0.1)
    assert found.latency_ms is not None
    assert found.latency_ms.difference.value == pytest.approx(7 / 3)
    assert found.latency_ms.difference.low < 7 / 3 < found.latency_ms.difference.high
    assert found.tokens is found.cost is None  # one pair is too few
    broken = pair(KEY, Side(run_result(error="crash: x"), {}), Side(run_result(), {}))
    assert rule([made(1, 2), broken], alpha=0.05, delta=0.1).latency_ms is None


def test_runs_made_side_by_side_are_no_independent_measurements() -> None:
    """One hiccup that slows the ten runs of a batch is one observation, not ten."""
    from dataclasses import replace

    def made(batch: int, head: float):
        return replace(pair(KEY, *(Side(run_result(latency_ms=ms), {}) for ms in (10.0, head))), batch=batch)

    pairs = [made(batch, 30.0 if batch == 1 else 10.0) for batch in (1, 2, 3) for _ in range(10)]
    found = rule(pairs, alpha=0.05, delta=0.1).latency_ms
    assert found is not None
    assert found.pairs == 30
    assert found.difference.low < 0 < found.difference.high


def test_pass_k_is_given_for_both() -> None:
    pairs = [pair_of([True], [trial > 1], trial=trial) for trial in (1, 2, 3, 4)]
    base, head = rule(pairs, alpha=0.05, delta=0.1).pass_k
    assert [k.value for k in base] == [1, 1, 1, 1]
    assert [k.value for k in head] == [0.75, 0.5, 0.25, 0]


def test_exit_codes_follow_the_conclusion() -> None:
    assert [comparison_of([how] * n).exit_code for how, n in ((LOST, 7), (TIED, 60), (TIED, 1))] == [1, 0, 3]
    assert [comparison_of([how] * n).verdict for how, n in ((LOST, 7), (TIED, 60))] == ["fail", "pass"]
    assert comparison_of([LOST] * 7, interrupted=True).exit_code == 130
