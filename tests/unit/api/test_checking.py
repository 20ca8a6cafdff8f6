"""What is known before anything is run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flakestorm.api.checking import check
from flakestorm.config import load
from flakestorm.engine.plan import BASELINE, make_plan
from flakestorm.errors import ConfigError


def checked(folder: Path, agent: str) -> None:
    file = folder / "flakestorm.yaml"
    file.write_text(f'version: "2.0"\nagent: {{{agent}}}\ngolden_prompts: [hi]\ninvariants: [{{type: completes}}]\n')
    work: Any = SimpleNamespace(config=load(file), path=file, again=())
    plan = make_plan("contract run", scenarios=[BASELINE], invariants=work.config.invariants, prompts=["hi"])
    assert check(work, plan) is plan


def test_no_code_of_the_agent_is_run(tmp_path: Path) -> None:
    (tmp_path / "never_run_agent.py").write_text("raise SystemExit('was run')")
    checked(tmp_path, 'type: python, endpoint: "never_run_agent:a", tools: "never_run_agent:b"')


@pytest.mark.parametrize(
    ("agent", "key"),
    [
        ('type: python, endpoint: "nowhere_to_be_found:a"', "agent.endpoint"),
        ('type: langchain, endpoint: "nowhere_to_be_found:a"', "agent.endpoint"),
        ('type: python, endpoint: "json:dumps", tools: "nowhere_to_be_found:a"', "agent.tools"),
        ('type: command, start: cat, reset_function: "nowhere_to_be_found:a"', "agent.reset_function"),
        ("type: command, start: cat, cwd: nowhere", "agent.cwd"),
    ],
)
def test_what_is_not_there_is_known(tmp_path: Path, agent: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(tmp_path, agent)
    assert caught.value.key == key
