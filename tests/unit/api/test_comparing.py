import pytest

from flakestorm.api import Options, Terms, compare
from flakestorm.api.comparing import _judged_as, plan_of
from flakestorm.config import loads
from flakestorm.engine.budget import Budget, Limits
from flakestorm.errors import Misuse

CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "{name}:answer"}}
golden_prompts: [hello, bye]
invariants: [{{id: echoes, type: contains, value: said}}]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, says in (("good", "said"), ("bad", "nothing")):
        (tmp_path / f"{name}.py").write_text(f"asked = []\ndef answer(text):\n    return f'{says} {{text}}'\n")
        (tmp_path / f"{name}.yaml").write_text(CONFIG.format(name=name))
    return tmp_path


def test_it_stops_when_it_is_clear(project) -> None:
    found = compare("good.yaml", "bad.yaml", options=Options(seed=1, concurrency=4))
    assert found.conclusion == "regression"
    assert len(found.pairs) == 8  # two batches of four
    assert {pair.key.trial for pair in found.pairs} == {1, 2, 3, 4}


def test_a_budget_is_for_both(project) -> None:
    budget = Budget(Limits(runs=4), lambda: 0.0)
    found = compare("good.yaml", "good.yaml", options=Options(seed=1, budget=budget))
    assert (len(found.pairs), found.stopped, found.exit_code) == (2, "--max-runs 4", 3)


def test_a_rate_is_for_both(project, monkeypatch) -> None:
    (project / "good.yaml").write_text(
        CONFIG.format(name="good") + "advanced: {rate_limit: {calls_per_minute: 6000}}\n"
    )
    monkeypatch.setattr("flakestorm.api.outfit.Pacing", None)  # a version makes none of its own
    found = compare("bad.yaml", "good.yaml", terms=Terms(max_pairs=4), options=Options(seed=1))
    assert any(note.startswith("starts waited 0.") for note in found.notes)


def test_what_would_be_run(project) -> None:
    from flakestorm.api import would_run

    def nothing(name):
        raise Misuse(name)

    terms = Terms(max_pairs=9)
    found = would_run("good.yaml", "bad.yaml", config="x", terms=terms, options=Options(), saved=nothing)
    assert [(name, runs) for name, runs, _ in found] == [("good.yaml", 9), ("bad.yaml", 9)]


def test_base_is_judged_by_what_head_has(project) -> None:
    """BASE names no tool; HEAD's names are its too."""
    found = _judged_as(
        loads(CONFIG.format(name="good") + "boundary: {tools: {search: '*/s'}}\n"), loads(CONFIG.format(name="bad"))
    )
    assert found.boundary.tools == {"search": "*/s"}
    assert found.agent.endpoint == "bad:answer"


def test_terms_that_make_no_sense_are_refused(project) -> None:
    with pytest.raises(Misuse, match="alpha and delta"):
        compare("good.yaml", "bad.yaml", terms=Terms(alpha=0))


def test_the_plan_is_heads_contract_else_its_prompts() -> None:
    plain = loads(CONFIG.format(name="good"))
    plan = plan_of(plain, 5)
    assert ([s.name for s in plan.scenarios], len(plan.trials)) == (["no chaos"], 6)
    assert len(plan_of(plain, 5, trials=1).trials) == 2
    shaken = loads(CONFIG.format(name="good") + "chaos: {tool_faults: [{tool: x, mode: error}]}\n")
    assert [s.name for s in plan_of(shaken, 1).scenarios] == ["no chaos", "chaos"]
