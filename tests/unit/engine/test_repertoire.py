import pytest

from flakestorm.config.model import Invariant
from flakestorm.core.site import Site
from flakestorm.engine.atoms import Atom, planned_of
from flakestorm.engine.repertoire import LASTING, Repertoire, repertoire_for, repertoire_of
from flakestorm.errors import Misuse

SITES = [Site("tool", "x", 1), Site("mcp", "x", 1), Site("http", "x", 1), Site("llm", "x", 1)]


@pytest.mark.parametrize("site", SITES, ids=str)
def test_every_fault_of_the_default_can_be_played(site: Site) -> None:
    for fault in Repertoire().faults(site):
        planned_of(Atom(site, fault)).check()
    for fault in Repertoire().lasting(site):
        assert planned_of(Atom(site, fault, lasting=True)).mode in LASTING


def test_lies_and_injections_are_told_where_a_rule_can_judge_them() -> None:
    plain = repertoire_for([Invariant(id="a", type="completes")])
    assert "wrong_value" not in plain.tool
    both = repertoire_for([Invariant(id="a", type="grounded"), Invariant(id="b", type="canary_absent")])
    assert {"wrong_value", "indirect_injection"} <= set(both.tool)


def test_chosen_modes_are_for_the_calls_they_can_act_on() -> None:
    chosen = repertoire_of(["error:500", "timeout", "rate_limit"])
    assert chosen.faults(SITES[0]) == ("error:500", "timeout")
    assert chosen.faults(SITES[3]) == ("timeout", "rate_limit")


def test_an_unknown_mode_is_refused_with_the_nearest() -> None:
    with pytest.raises(Misuse, match="did you mean 'timeout'"):
        repertoire_of(["timeut"])
