"""The command line that makes a run again."""

from pathlib import Path

import pytest

from flakestorm.api import Project
from flakestorm.api.reproducing import LONGEST_ARGUMENT, reproduce_by
from flakestorm.config.load import loads
from flakestorm.config.model import Scenario, ToolFault
from flakestorm.core.conversation import Conversation
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.site import Site
from flakestorm.engine.plan import BASELINE, Trial
from flakestorm.faults.schedule import Schedule
from flakestorm.mutations.base import Mutation

CONFIG = 'version: "2.0"\nagent: {type: python, endpoint: "a:b"}\ngolden_prompts: [hello]\n'
PROJECT = Project(loads(CONFIG), Path("flakestorm.yaml"))


def line(text: str, mutation: Mutation | None = None, *, project: Project = PROJECT) -> str:
    trial = Trial("r-0001", BASELINE, 0, text, 1, (), mutation)
    return reproduce_by(project, 7)(trial, Schedule.of(BASELINE), Ledger())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "--prompt 0"),
        ("what else", "--input 'what else'"),
        (Conversation(["one", "two"]), "--input one --input two"),
    ],
)
def test_the_input_is_a_golden_prompt_or_said(text: str, said: str) -> None:
    assert line(text) == f"flakestorm run -c flakestorm.yaml {said}"


def test_a_long_mutation_is_named() -> None:
    text = "x" * (LONGEST_ARGUMENT + 1)
    mutation = Mutation("noise", "typos", "benign", "hello", text, 3)
    assert line(text, mutation) == "flakestorm run -c flakestorm.yaml --seed 7 --prompt 0 --mutate 'noise#3'"


def test_what_fired_is_injected() -> None:
    scenario = Scenario(name="down", tool_faults=[ToolFault(tool="search", mode="error", error_code=503)])
    ledger = Ledger(fired=[Firing(Site("tool", "search", 2), "error", "tool_faults")])
    trial = Trial("r-0001", scenario, 0, "hello", 1, ())
    said = reproduce_by(PROJECT, 7)(trial, Schedule.of(scenario), ledger)
    assert said == "flakestorm run -c flakestorm.yaml --prompt 0 --inject 'tool/search#2=error:503'"
