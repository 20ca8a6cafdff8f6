"""Plug-ins that do not work, installed as a stranger would: each is named, and what does not use it is not broken."""

import os
from pathlib import Path

import pytest

import flakestorm as package
from e2e_support import flakestorm, write_config

PLUGINS = """
from flakestorm.faults.plugins import fault

def unmarked(spec, scene): ...

@fault("tool")
def crashes(spec, scene):
    raise ValueError("no luck today")

@fault("tool")
def nothing(spec, scene): ...

def no_agent(order): ...

def unmade(order):
    raise ValueError("no agent today")
"""
POINTS = """
[flakestorm.faults]
gone = no_such_module:fault
unmarked = my_plugins:unmarked
crashes = my_plugins:crashes
nothing = my_plugins:nothing
[flakestorm.agents]
no_agent = my_plugins:no_agent
unmade = my_plugins:unmade
"""
AGENT = """
def search(to: str) -> dict:
    return {"to": to}

TOOLS = [search]

def answer(text: str) -> str:
    try:
        return f"found {search('Oslo')}"
    except Exception as error:
        return f"sorry: {error!r}"
"""


@pytest.fixture
def env(tmp_path) -> dict[str, str]:
    info = tmp_path / "site" / "my_plugins-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (info.parent / "my_plugins.py").write_text(PLUGINS)
    (tmp_path / "program.py").write_text(AGENT)
    return {"PYTHONPATH": os.pathsep.join((str(info.parent), str(Path(package.__file__).parents[1])))}


def config(folder: Path, mode: str = "error", kind: str = "python") -> None:
    fault = {"tool": "search", "mode": mode}
    write_config(
        folder,
        agent={"type": kind, "endpoint": "program:answer", "tools": "program:TOOLS"},
        contract={
            "name": "c",
            "invariants": [{"id": "answers", "type": "completes"}],
            "chaos_matrix": [{"name": "calm"}, {"name": "bad", "tool_faults": [fault]}],
        },
    )


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("gone", "mode 'gone' from no_such_module:fault cannot be loaded: No module named 'no_such_module'"),
        ("unmarked", "mode 'unmarked' from my_plugins:unmarked cannot be loaded: it does not say whose fault it is"),
    ],
)
def test_a_fault_that_cannot_be_loaded_is_a_wrong_config(tmp_path, env, mode, said) -> None:
    config(tmp_path, mode)
    for command in (("contract", "validate"), ("contract", "run"), ("run", "--inject", f"tool/search#1={mode}")):
        done = flakestorm(tmp_path, *command, env=env)
        assert done.code == 2
        assert said in done.err


@pytest.mark.parametrize(("mode", "said"), [("crashes", "ValueError: no luck today"), ("nothing", "TypeError: ")])
def test_a_fault_that_fails_is_named_and_the_agent_never_sees_it(tmp_path, env, mode, said) -> None:
    config(tmp_path, mode)
    done = flakestorm(tmp_path, "contract", "run", env=env, report=True)
    assert done.code == 3
    assert done.run("bad")["output"] == "found {'to': 'Oslo'}"
    cell = done.cell("bad", "answers")
    assert cell["verdict"] == "inconclusive"
    assert f"{mode} did nothing at tool/search#1: its own code failed, {said}" in cell["reason"]
    assert done.cell("calm", "answers")["verdict"] == "pass"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("unmade", "agent type 'unmade' from my_plugins cannot be made: ValueError: no agent today"),
        ("no_agent", "agent type 'no_agent' from my_plugins gave what is no agent, None: it has no start, ask, close"),
    ],
)
def test_an_agent_that_cannot_be_made_is_named(tmp_path, env, kind, said) -> None:
    config(tmp_path, kind=kind)
    done = flakestorm(tmp_path, "contract", "run", env=env)
    assert done.code == 2
    assert said in done.err


def test_what_does_not_use_them_is_not_broken(tmp_path, env) -> None:
    config(tmp_path)
    assert flakestorm(tmp_path, "contract", "run", env=env).code == 0
