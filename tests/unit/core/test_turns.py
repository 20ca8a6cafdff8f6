import sys
from contextlib import ExitStack

import pytest

from flakestorm.core.turns import TURN_S, short_turns


def test_turns_are_short_until_the_last_has_left_in_whatever_order() -> None:
    before = sys.getswitchinterval()
    one, other = ExitStack(), ExitStack()
    one.enter_context(short_turns())
    other.enter_context(short_turns())
    one.close()
    assert sys.getswitchinterval() == pytest.approx(TURN_S)
    other.close()
    assert sys.getswitchinterval() == before


def test_turns_that_are_shorter_already_stay_so() -> None:
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(TURN_S / 2)
        with short_turns():
            assert sys.getswitchinterval() == pytest.approx(TURN_S / 2)
        assert sys.getswitchinterval() == pytest.approx(TURN_S / 2)
    finally:
        sys.setswitchinterval(before)
