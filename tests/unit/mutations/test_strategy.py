from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.choices import Choices
from flakestorm.mutations.strategy import PROOFS, Bandit, signature

ARMS = {(f"type {n // 4}", f"operator {n}"): 50 for n in range(20)}
CRASH = [("filled", 'no output: crash in "abc" at 12')]


def test_every_arm_is_tried_before_any_is_tried_twice() -> None:
    bandit, seen = Bandit(Choices(1)), Counter()
    for _ in range(4):
        for arm in bandit.choose(ARMS, 5):
            seen[arm] += 1
            bandit.learn(arm, CRASH if arm == ("type 0", "operator 1") else [])
    assert seen == Counter(dict.fromkeys(ARMS, 1))


@given(st.integers(), st.dictionaries(st.tuples(st.just("t"), st.text(max_size=3)), st.integers(0, 3), max_size=6))
def test_no_arm_is_pulled_more_often_than_it_can(seed, left) -> None:
    chosen = Counter(Bandit(Choices(seed)).choose(left, 8))
    assert all(chosen[arm] <= left[arm] for arm in chosen)
    assert chosen.total() == min(8, sum(left.values()))


def test_an_arm_that_finds_new_things_is_preferred() -> None:
    bandit, seen, good = Bandit(Choices(2)), Counter(), ("type 2", "operator 9")
    for turn in range(40):
        for arm in bandit.choose(ARMS):
            seen[arm] += 1
            bandit.learn(arm, [("filled", f"reason {'x' * turn}")] if arm == good else [])
    assert seen.most_common(1)[0][0] == good
    assert seen[good] > 3 * (seen.total() - seen[good]) / (len(ARMS) - 1)


def test_near_identical_failures_are_one() -> None:
    assert signature(CRASH) == signature([("filled", 'no output: crash in "xyz" at 99')])
    assert signature(CRASH) != signature([("filled", "time-out")])
    bandit = Bandit(Choices(1))
    assert [bandit.learn(("a", "b"), CRASH) for _ in range(PROOFS + 1)] == [True] * PROOFS + [False]
