import subprocess
import sys

import pytest

from contracts_support import inv, said
from flakestorm.config.vocabulary import INVARIANT_TYPES
from flakestorm.contracts.base import RunView, built_in, demands, invariants, settings
from flakestorm.core.verdict import Verdict, passed
from flakestorm.errors import Misuse


def test_every_built_in_type_is_a_word_of_the_format_and_says_what_it_demands() -> None:
    assert set(invariants) <= set(INVARIANT_TYPES.words)
    for name in invariants:
        assert invariants.get(name)
    assert set(demands) == set(settings) == set(invariants)


def test_a_type_is_imported_when_it_is_judged_by() -> None:
    code = (
        "import sys\n"
        "from flakestorm.config.model import Invariant\n"
        "from flakestorm.contracts.matrix import prepare\n"
        "prepare([Invariant(type='contains', value='x')])\n"
        "others = {'flakestorm.contracts.safety', 'flakestorm.contracts.trajectory', 'flakestorm.patterns.scanner'}\n"
        "assert not others & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_needed_settings_are_fields_of_an_invariant() -> None:
    assert {field for needed in settings.values() for field in needed} <= set(inv().__struct_fields__)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(Misuse, match="registered twice"):

        @built_in("contains", "requires")
        def another(_spec: object, _run: RunView) -> Verdict:
            return passed()

    assert settings["contains"] == ("value",)


def test_a_run_is_by_default_one_without_chaos() -> None:
    run = said("hello")
    assert (run.chaos, run.ledger.planned, run.error) == (False, 0, None)
