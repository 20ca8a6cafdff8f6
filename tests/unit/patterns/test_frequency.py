"""How often texts have a string: only which of two is rarer matters."""

from __future__ import annotations

import pytest

from flakestorm.patterns.frequency import commonness


@pytest.mark.parametrize(
    ("rarer", "commoner"),
    [
        (" jailbreak ", " prompt "),
        (" prompt ", " the "),
        (" ignore the ", " ignore "),
        (" ignore ", " ignor"),
        (" dan ", "dan"),
        ("<|im", "im"),
        ("000-00-0000", "00"),
        (" 0000", " aaaa"),
    ],
)
def test_what_is_rarer(rarer: str, commoner: str) -> None:
    assert 0 < commonness(rarer) < commonness(commoner)
