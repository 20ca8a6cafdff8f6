from pathlib import Path
from typing import Any

import pytest

from flakestorm.api import Options
from flakestorm.errors import Misuse


@pytest.mark.parametrize(
    "wrong",
    [
        {"trials": 0},
        {"trials": "3"},
        {"seed": "x"},
        {"seed": -1},
        {"seed": True},
        {"concurrency": 0},
        {"min_score": 101},
    ],
)
def test_a_number_that_is_none_or_out_of_its_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match=rf"Options\({next(iter(wrong))}=.*give a (whole )?number from"):
        Options(**wrong)


def test_defaults_leave_everything_to_the_config() -> None:
    options = Options()
    assert (options.seed, options.trials, options.concurrency, options.min_score, options.resume) == (None,) * 5
    assert options.tapes == Path("reports/tapes")
    assert options.listener(object()) is None  # type: ignore[arg-type, func-returns-value]
