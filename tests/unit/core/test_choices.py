import os
import subprocess
import sys
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.choices import Choices, entropy_seed, entropy_token, entropy_uuid

SCRIPT = """
from flakestorm.core.choices import Choices
choices = Choices(42, "s")
print(choices.uniform("x"), choices.below(9, 1), choices.token("t"))
"""


def test_draws_are_the_same_in_another_process_with_another_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "12345")
    }
    assert len(outputs) == 1


def test_known_values_hold_across_versions() -> None:
    choices = Choices(42, "scenario", 0)
    assert choices.uniform("fault", "tool/search#1") == 0.5837381157301557
    assert choices.token("canary") == "c902ab821463"


@given(st.integers(), st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_a_draw_depends_on_seed_and_purpose_only(seed, scope, purpose) -> None:
    one = Choices(seed, *scope)
    one.uniform("something else entirely")
    assert one.uniform(*purpose) == Choices(seed).within(*scope).uniform(*purpose)
    assert 0 <= one.uniform(*purpose) < 1


def test_words_do_not_run_together() -> None:
    assert Choices(1).digest("ab", "c") != Choices(1).digest("a", "bc")


def test_uniform_looks_uniform() -> None:
    draws = [Choices(7).uniform(i) for i in range(4000)]
    assert abs(sum(draws) / len(draws) - 0.5) < 0.02
    assert abs(sum(d < 0.1 for d in draws) / len(draws) - 0.1) < 0.02


def test_picks_cover_every_option_and_refuse_none() -> None:
    assert {Choices(3).pick("abc", i) for i in range(60)} == set("abc")
    with pytest.raises(ValueError, match="cannot choose below 0"):
        Choices(3).pick([], 1)


def test_streams_are_reproducible_and_apart() -> None:
    assert Choices(1).stream("a").random() == Choices(1).stream("a").random() != Choices(1).stream("b").random()


def test_entropy_differs() -> None:
    assert entropy_token() != entropy_token()
    assert 0 <= entropy_seed() < 2**31


def test_a_fresh_name_is_a_random_uuid() -> None:
    first, second = UUID(entropy_uuid()), UUID(entropy_uuid())
    assert first != second
    assert (first.version, first.variant) == (4, "specified in RFC 4122")
