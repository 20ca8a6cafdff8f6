"""What a replay would run, before anything is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from flakestorm.api import Options
from flakestorm.api.incidents import anew, contract_name, incidents_at, plan_of
from flakestorm.config.load import loads
from flakestorm.config.model import Config
from flakestorm.config.replays import ReplaySession
from flakestorm.engine.events import Report
from flakestorm.errors import ConfigError, Misuse
from flakestorm.reports.document import write_json
from flakestorm.sessions.files import Incident

CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "a:b"}
golden_prompts: [first, second]
invariants: [{id: top, type: completes}]
contract:
  name: promises
  trials: 2
  invariants:
    - {id: one, type: completes}
    - {id: probing, type: completes, probes: [x]}
    - {id: same, type: behavior_unchanged}
replays: {sessions: [{id: a, input: go, contract: promises, faults: ["llm/*#1=rate_limit"]}]}
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return loads(CONFIG, folder=tmp_path)


def incident(tmp_path: Path, **keys: object) -> Incident:
    return Incident(ReplaySession(**{"id": "i", "input": "go", "contract": "promises", **keys}), None, tmp_path)  # type: ignore[arg-type]


def test_each_session_is_a_scenario_with_its_own_input_and_rules(config: Config) -> None:
    plan, notes = plan_of(config, incidents_at(config, None))
    assert [(t.run, t.scenario.name, t.prompt, t.text, t.number) for t in plan.trials] == [
        ("r-0001", "a", 2, "go", 1),
        ("r-0002", "a", 2, "go", 2),
    ]
    assert [str(i.id) for i in plan.invariants] == ["one"]
    assert notes == ["same compares with a run without chaos, which a replay has not, and was left out"]
    assert plan.scenarios[0].llm_faults
    assert contract_name(config) == "promises"


def test_a_contract_beside_a_session_runs_functions_in_the_project_s_own_folder_only(
    config: Config, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    for folder in (tmp_path, tmp_path / "project"):
        (folder / "checked.yaml").write_text("name: c\ninvariants: [{id: one, type: check, function: 'm:f'}]\n")
    own = config.at(tmp_path / "project")
    plan_of(own, [incident(tmp_path / "project", contract="checked.yaml")])
    for name in ("checked.yaml", "project/../checked.yaml"):
        with pytest.raises(ConfigError, match=r"checked\.yaml: invariants: one would have 'm:f' run"):
            plan_of(own, [incident(tmp_path, contract=name)])


def test_top_level_rules_and_a_contract_in_a_file(config: Config, tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text("name: strict\ninvariants: [{id: one, type: completes}]\n")
    several = [incident(tmp_path, contract="top-level"), incident(tmp_path, id="j", contract="strict.yaml")]
    plan, _ = plan_of(config, several, trials=1)
    assert [str(i.id) for i in plan.invariants] == ["top", "one (strict)"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([{"contract": "promise"}], "there is no contract 'promise': did you mean 'promises'"),
        ([{"contract": "default"}], "the session names none; say contract: promises"),
        ([{"faults": ["nonsense"]}], "session i: "),
        ([{}, {}], "two sessions have the id 'i'"),
        ([], "there is no session to replay"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    config: Config, tmp_path: Path, keys: list[dict[str, object]], said: str
) -> None:
    with pytest.raises(Misuse, match=said):
        plan_of(config, [incident(tmp_path, **each) for each in keys])


def test_resuming_does_all_again_by_the_same_seed(tmp_path: Path) -> None:
    report = Report("replay run", "fail", 1, "", 17, "2026-01-01T00:00:00Z", 1.0, {}, (), ())
    write_json(report, tmp_path / "report.json")
    for earlier in (report, tmp_path / "report.json"):
        assert (anew(Options(resume=earlier)).seed, anew(Options(resume=earlier)).resume) == (17, None)
    assert anew(Options(resume=report, seed=3)).seed == 3


def test_a_contract_that_judges_no_session(tmp_path: Path) -> None:
    text = CONFIG.replace("    - {id: one, type: completes}\n", "")
    with pytest.raises(ConfigError, match="has no invariant that judges a session"):
        plan_of(loads(text, folder=tmp_path), [incident(tmp_path)])
