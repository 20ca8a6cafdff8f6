from pathlib import Path

import click
import pytest

from flakestorm.api.options import OnRay
from flakestorm.cli.options import Globals, global_options
from flakestorm.config.model import Advanced
from flakestorm.errors import Misuse

SEEN: list[Globals] = []


@click.group()
@global_options
def group(options: Globals) -> None:
    pass


@group.command()
@global_options
@click.option("--own", type=int)
def leaf(options: Globals, own: int | None) -> int | None:
    SEEN.append(options)
    return own


def seen(*args: str) -> Globals:
    group.main(args=list(args), standalone_mode=False)
    return SEEN.pop()


def test_global_options_stand_before_or_after_the_command_and_the_later_one_wins() -> None:
    assert seen("--seed", "1", "leaf").seed == 1
    assert seen("leaf", "--seed", "2").seed == 2
    assert seen("--seed", "1", "--quiet", "leaf", "--seed", "2") == Globals(seed=2, quiet=True)


@pytest.mark.parametrize("seed", [-(2**63), -1, 0, 2**63 - 1, -(2**63) - 1, 2**63])
def test_a_seed_is_taken_where_a_config_takes_it(seed: int) -> None:
    try:
        in_config = Advanced.of({"seed": seed}).seed
    except ValueError:
        with pytest.raises(click.BadParameter, match="is not in the range"):
            seen("leaf", "--seed", str(seed))
    else:
        assert seen("leaf", "--seed", str(seed)).seed == in_config == seed
        assert seen("leaf", f"--seed={seed}").seed == seed


def test_a_commands_own_options_stay_its_own() -> None:
    assert group.main(args=["leaf", "--own", "7"], standalone_mode=False) == 7
    assert SEEN.pop() == Globals()


def test_the_config_defaults_to_the_current_folder() -> None:
    assert seen("leaf").config_path == Path("flakestorm.yaml")
    assert seen("leaf", "-c", "other.yaml").config_path == Path("other.yaml")


def test_workers_are_for_commands_that_have_a_use_for_them() -> None:
    with pytest.raises(Misuse, match="`leaf` is carried out here only"):
        seen("leaf", "--executor", "ray")
    with pytest.raises(Misuse, match="add --executor ray"):
        seen("leaf", "--workers", "2")
    assert Globals(executor="local").ray is None
    assert Globals(executor="ray", workers=2, address="auto").ray == OnRay(2, "auto")
