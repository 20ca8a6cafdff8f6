"""What a test sees of a run."""

import pytest

from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from flakestorm.pytest_plugin.runs import inconclusive, refuse
from flakestorm.tape.model import Exchange
from unit_runs import made

CALLS = [Exchange(Site("tool", name, 1), url="http://t/") for name in ("search", "book")]


def test_calls_by_name_or_glob() -> None:
    tape = made(exchanges=CALLS).tape
    assert [call.tool for call in tape.calls()] == ["search", "book"]
    assert [call.site for call in tape.calls(tool="b*")] == ["tool/book#1"]
    assert tape.calls(tool="pay") == []
    assert tape.exchanges == CALLS


def test_a_tape_that_proves_nothing_says_so() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"^inconclusive: no call of this agent crossed the boundary"):
        made(held=False).tape.calls(tool="pay")


def test_it_is_shown_in_a_line() -> None:
    assert repr(made()) == "<run output='b', fired=[]>"
    assert repr(made(error="crash", output="")) == "<run error='crash', fired=[]>"


def test_the_two_ways_to_end_a_test() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"^inconclusive: why"):
        inconclusive("why")
    with pytest.raises(pytest.fail.Exception, match=r"^what to do"):
        refuse(Misuse("what to do"))
