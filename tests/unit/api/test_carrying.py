from pathlib import Path

import pytest

from flakestorm.api import Options, load
from flakestorm.api.carrying import carry_out, seed_of
from flakestorm.config.model import Scenario
from flakestorm.core.call import Call, Reply
from flakestorm.engine.hooks import Hooks
from flakestorm.engine.plan import BASELINE, make_plan
from flakestorm.engine.score import Gate
from flakestorm.faults.schedule import parse_injection
from flakestorm.tape.reader import Tape

AGENT = """
import httpx

def answer(text):
    return httpx.get("http://127.0.0.1:9/search").text
"""
CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "{module}:answer"}}
golden_prompts: [hello]
invariants: [{{id: says, type: contains, value: stood in}}]
advanced: {{seed: 7}}
"""


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest):
    module = f"carried_{abs(hash(request.node.name))}"
    (tmp_path / f"{module}.py").write_text(AGENT)
    (tmp_path / "flakestorm.yaml").write_text(CONFIG.format(module=module))
    return load(tmp_path / "flakestorm.yaml")


def test_the_seed_is_the_nearest_one(project) -> None:
    assert seed_of(project.config, Options(seed=1), 2) == 1
    assert seed_of(project.config, Options(), 2) == 2
    assert seed_of(project.config, Options()) == 7


def test_stages_within_stand_between_the_faults_and_the_world(project, tmp_path: Path) -> None:
    def stand_in(call: Call):
        return Reply(200, (("content-type", "text/plain"),), b"stood in")
        yield call

    plan = make_plan("run", scenarios=[BASELINE], invariants=project.config.invariants, prompts=["hello"])
    report = carry_out(
        project, plan, Gate("single"), Options(tapes=tmp_path), hooks=Hooks(within=lambda _, __: (stand_in,))
    )
    assert (report.verdict, report.runs[0].output) == ("pass", "stood in")


def test_what_stands_in_is_the_worlds_word_where_a_fault_hits_it(project, tmp_path: Path) -> None:
    def stand_in(call: Call):
        return Reply(200, (("content-type", "text/plain"),), b"stood in")
        yield call

    scenario = Scenario(name="down", tool_faults=[parse_injection("http/127.0.0.1#1=malicious_response:boo").spec])
    plan = make_plan("run", scenarios=[scenario], invariants=project.config.invariants, prompts=["hello"])
    report = carry_out(
        project, plan, Gate("single"), Options(tapes=tmp_path), hooks=Hooks(within=lambda _, __: (stand_in,))
    )
    (exchange,) = Tape.open(report.runs[0].tape)
    assert [fault.mode for fault in exchange.faults] == ["malicious_response"]
    assert exchange.world is not None
    assert (exchange.sent, exchange.world.body) == (0, b"stood in")
    assert exchange.reply.body != b"stood in"
