import random

from flakestorm.core.site import Site
from flakestorm.engine.atoms import Ask
from flakestorm.engine.ground import Ground
from flakestorm.engine.packing import Packer
from search_support import agent, atoms

CALLS = ["a#1", "b#1", "c#1"]


def packer(*passed: str) -> Packer:
    """Three calls, of which a run with these faults has passed."""
    ground = Ground(lambda _: ("error", "timeout"), random.Random(1))
    ground.base(Site.parse(f"tool/{call}") for call in CALLS)
    for line in passed:
        ground.learn(agent(CALLS)(Ask(atoms(*line.split()))))
    return Packer(ground)


def test_a_schedule_breaks_every_call_that_it_can() -> None:
    assert len({atom.site for atom in packer().pack()}) == 3


def test_a_query_is_filled_with_what_passed_alone_and_did_not_meet_yet() -> None:
    filled = packer("a#1=error b#1=error", "b#1=error c#1=timeout").fill(atoms("a#1=error"), frozenset())
    assert filled == atoms("a#1=error", "c#1=timeout")


def test_nothing_is_added_that_must_not_be() -> None:
    made = packer("b#1=error", "c#1=timeout")
    assert made.fill(atoms("a#1=error"), atoms("b#1=error")) == atoms("a#1=error", "c#1=timeout")


def test_a_known_failure_is_no_filling() -> None:
    made = packer("b#1=error", "c#1=timeout")
    made.ground.convict(atoms("a#1=error", "b#1=error"))
    assert made.fill(atoms("a#1=error"), frozenset()) == atoms("a#1=error", "c#1=timeout")


def test_a_delay_is_left_alone() -> None:
    ground = Ground(lambda _: ("slow", "error"), random.Random(1))
    ground.base(Site.parse(f"tool/{call}") for call in CALLS)
    ground.learn(agent(CALLS)(Ask(atoms("b#1=error", "c#1=error"))))
    assert Packer(ground).fill(atoms("a#1=slow"), frozenset()) == atoms("a#1=slow")


def test_what_is_not_known_makes_a_run_less_likely_to_pass() -> None:
    made = packer("a#1=error")
    assert made.passes(atoms("a#1=error")) == 1.0
    assert made.passes(atoms("b#1=error")) < 1.0
    made.ground.convict(atoms("b#1=timeout"))
    assert made.passes(atoms("b#1=error")) == 0.5
