import random

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Ask
from flakestorm.engine.ground import Coverage, Ground, bits
from flakestorm.engine.packing import Packer
from search_support import agent, atoms


def ground(*calls: str, faults: tuple[str, ...] = ("error", "timeout")) -> Ground:
    made = Ground(lambda _: faults, random.Random(1))
    made.base(Site.parse(f"tool/{call}") for call in calls)
    return made


def test_bits_are_the_places_of_the_ones() -> None:
    assert list(bits(0b1011)) == [0, 1, 3]


def test_only_what_fired_in_a_run_that_passed_is_covered() -> None:
    made = ground("a#1", "b#1")
    run = agent(["a#1", "b#1"])
    assert made.coverage() == Coverage(0, 0, 0, 2, 4, 4)
    made.learn(run(Ask(atoms("a#1=error", "b#1=error"))))
    assert made.coverage() == Coverage(2, 2, 1, 2, 4, 4)
    made.learn(agent(["a#1", "b#1"], ["a#1=timeout"])(Ask(atoms("a#1=timeout", "b#1=timeout"))))
    assert made.coverage().singles == 2


def test_nothing_that_holds_a_known_failure_is_scheduled_again() -> None:
    made = ground("a#1", "b#1")
    made.convict(atoms("a#1=error"))
    made.convict(atoms("a#1=timeout", "b#1=timeout"))
    for _ in range(50):
        packed = Packer(made).pack()
        assert not atoms("a#1=error") <= packed
        assert not atoms("a#1=timeout", "b#1=timeout") <= packed


def test_a_fault_that_finds_nothing_to_change_is_left_out() -> None:
    made = ground("a#1")
    idle = agent(["a#1"])(Ask(frozenset()))
    made.learn(type(idle)(atoms("a#1=error"), (), idle.sites))
    assert made.coverage().all_singles == 1


def test_a_call_that_is_made_under_a_fault_joins() -> None:
    made = ground("a#1")
    run = agent(["a#1"], after={"a#1=error": "b#1"})
    made.learn(run(Ask(atoms("a#1=error"))))
    assert made.coverage().all_sites == 2
    pairs = {made.set_of(1 << i | 1 << j) for i, j in made.pairs_left()}
    assert pairs == {atoms("a#1=error", "b#1=error"), atoms("a#1=error", "b#1=timeout")}


def test_what_was_chance_is_tried_again() -> None:
    made = ground("a#1", "b#1", faults=("error",))
    made.convict(atoms("a#1=error"))
    made.convict(atoms("b#1=error"))
    made.acquit([atoms("a#1=error")])
    assert not made.forbidden(made.mask(atoms("a#1=error")))
    assert made.forbidden(made.mask(atoms("b#1=error")))
    assert Packer(made).pack() == atoms("a#1=error")


def test_what_differs_only_in_modes_that_were_avoided_is_avoided() -> None:
    made = ground("a#1", "b#1", "c#1", faults=("error", "timeout", "empty"))
    made.avoid(atoms("a#1=error", "b#1=error", "c#1=error"))
    assert not made.forbidden(made.mask(atoms("a#1=error", "b#1=timeout", "c#1=error")))
    made.avoid(atoms("a#1=timeout", "b#1=timeout", "c#1=error"))
    assert made.forbidden(made.mask(atoms("a#1=error", "b#1=timeout", "c#1=error")))
    assert not made.forbidden(made.mask(atoms("a#1=error", "b#1=timeout", "c#1=empty")))
    assert not made.forbidden(made.mask(atoms("a#1=error", "b#1=timeout")))
