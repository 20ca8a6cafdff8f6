import pytest

from flakestorm import api
from flakestorm.api.mutating import recipe_of
from flakestorm.errors import Misuse

CONFIG = """
version: "1.0"
agent: {type: python, endpoint: "mutated_agent:answer"}
golden_prompts: [Book a flight to Oslo]
mutations: {types: [noise], count: 3, weights: {noise: 2.0}, custom_templates: {loud: "{prompt}!!!"}}
invariants: [{type: output_not_empty}]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mutated_agent.py").write_text("def answer(text):\n    return text\n")
    (tmp_path / "flakestorm.yaml").write_text(CONFIG)
    return api.load()


def test_templates_are_used_wherever_there_are_any(project) -> None:
    recipe = recipe_of(project.config, 5)
    assert (recipe.types, recipe.count, recipe.seed) == (("noise", "custom"), 3, 5)
    assert recipe.weight("noise") == 2.0


def test_a_project_runs_its_mutations(project) -> None:
    report = project.mutations(api.Options(seed=1))
    assert [run.mutation.type for run in report.runs] == ["noise"] * 3 + ["custom"]
    assert [run.output for run in report.runs] == [run.input for run in report.runs]
    assert report.scores["robustness"].conclusive == 4
    assert any(note.startswith("custom: 1 of 3") for note in report.notes)


def test_one_mutation_is_run_again_by_its_name(project) -> None:
    report = project.mutations(api.Options(seed=1))
    second = next(run for run in report.runs if run.mutation.number == 2)
    (again,) = project.inject(0, (), api.Options(seed=1), mutation="noise#2").runs
    assert (again.input, again.mutation) == (second.input, second.mutation)


@pytest.mark.parametrize("name", ["noise", "noise#x", "noise#0", "#1", "nose#1"])
def test_what_is_no_mutation_is_refused(project, name) -> None:
    with pytest.raises(Misuse):
        project.inject(0, (), api.Options(seed=1), mutation=name)
