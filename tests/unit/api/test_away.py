"""The half of a project's pieces that workers put together, and what is refused before anything is started."""

import pickle
from pathlib import Path

import pytest

from flakestorm.api import Options, load
from flakestorm.api.away import Sent, away_runner_of, serve
from flakestorm.api.carrying import hub_of, runner_of
from flakestorm.api.options import OnRay
from flakestorm.engine.hooks import Hooks
from flakestorm.errors import ConfigError, Misuse
from flakestorm.executors.world import LocalWorld
from flakestorm.mutations.base import REQUEST_TYPES
from flakestorm.mutations.outgoing import Outgoing
from mutations_support import mutations

CONFIG = """
version: "2.0"
agent: {agent}
golden_prompts: [hello]
contract:
  name: promises
  invariants:
    - {{id: says, type: check, function: "rules_of_away:says"}}
  chaos_matrix: [{{name: calm}}]
advanced: {{seed: 7}}
"""
PYTHON = '{type: python, endpoint: "agent_of_away:answer"}'
FIXED = '{type: http, endpoint: "http://127.0.0.1:8123/", start: "python a.py"}'


def project(folder: Path, agent: str = PYTHON):
    (folder / "agent_of_away.py").write_text("def answer(text):\n    return text.upper()\n")
    (folder / "rules_of_away.py").write_text("def says(run):\n    return run.output == 'HELLO'\n")
    (folder / "flakestorm.yaml").write_text(CONFIG.format(agent=agent))
    return load(folder / "flakestorm.yaml")


async def test_a_worker_makes_a_run_from_what_it_was_sent_alone(tmp_path: Path) -> None:
    here = project(tmp_path)
    plan = here.contract_plan(Options())
    sent = pickle.loads(pickle.dumps((Sent(here.config, here.path, ()), plan.scenarios, plan.invariants, plan.trials)))
    work, scenarios, invariants, trials = sent
    assert work.config.folder == str(tmp_path)
    async with serve(work, scenarios, invariants, 7) as runner:
        await runner.agent.start()
        found = await runner.one(trials[0])
        assert Path(found.run.tape).exists()
    assert not Path(found.run.tape).exists()
    assert [verdict.outcome for _, verdict in found.verdicts] == ["pass"]
    assert found.run.reproduce == f"flakestorm run -c {here.path} --prompt 0"


def test_a_change_of_the_request_travels_with_its_run() -> None:
    cloudpickle = pytest.importorskip("ray.cloudpickle", reason="ray is not installed for this Python")
    before = Outgoing("POST", "http://agent/ask", headers=(("Content-Type", "application/json"),), body=b"{}")
    for kind in REQUEST_TYPES:
        for mutation in mutations(kind, "hi", count=4):
            there = pickle.loads(cloudpickle.dumps(mutation))
            assert there.change(before) == mutation.change(before)


async def test_agents_that_would_share_a_port_are_refused(tmp_path: Path) -> None:
    here, options = project(tmp_path, FIXED), Options()
    hub, world = hub_of(here.config), LocalWorld(tmp_path / "tapes")
    with pytest.raises(ConfigError, match=r"use \{port\}"):
        async with away_runner_of(here, (), (), options, OnRay(2), 1, world, hub):
            pass


async def test_what_needs_its_runs_here_is_refused(tmp_path: Path) -> None:
    here, options = project(tmp_path), Options(ray=OnRay(2))
    with pytest.raises(Misuse, match="leave out --executor ray"):
        async with runner_of(here, (), (), options, 1, LocalWorld(tmp_path / "tapes"), hub_of(here.config)):
            pass


def test_a_run_with_stages_of_its_own_is_refused(tmp_path: Path) -> None:
    from flakestorm.api.carrying import carry_out
    from flakestorm.engine.score import Gate

    here, options = project(tmp_path), Options(ray=OnRay(2), tapes=tmp_path / "tapes")
    with pytest.raises(Misuse, match="leave out --executor ray"):
        carry_out(here, here.contract_plan(options), Gate("contract"), options, hooks=Hooks())
