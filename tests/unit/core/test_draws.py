from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.draws import Draws
from flakestorm.errors import TapeDamaged


@given(st.integers(0, 2**63 - 1), st.integers(0, 253_402_300_799_000), st.integers(1, 2))
def test_a_tape_gives_back_what_it_was_given(seed: int, epoch_ms: int, form: int) -> None:
    draws = Draws(seed, epoch_ms, form)
    assert Draws.of({"draws": draws.header}) == draws
    assert 0 <= int(draws.hash_seed) < 2**32


def test_a_tape_of_the_first_form_says_none() -> None:
    assert Draws.of({"draws": {"seed": 1, "epoch_ms": 2}}) == Draws(1, 2, form=1)


def test_a_run_with_real_draws_has_none() -> None:
    assert Draws.of({"input": "x"}) is None


@pytest.mark.parametrize(
    "kept",
    [1, [], {}, {"seed": 1}, {"seed": "1", "epoch_ms": 1}, {"seed": -1, "epoch_ms": 1}, {"seed": 2**63, "epoch_ms": 1},
     {"seed": 1, "epoch_ms": 1e3}, {"seed": True, "epoch_ms": 1}, {"seed": 1, "epoch_ms": 2**60},
     {"seed": 1, "epoch_ms": 1, "form": 3}, {"seed": 1, "epoch_ms": 1, "form": True}],
)  # fmt: skip
def test_what_a_stranger_wrote_there_is_refused(kept: object) -> None:
    with pytest.raises(TapeDamaged, match="draws that cannot be made again"):
        Draws.of({"draws": kept})
