"""`measure: semantic` and `measure: model` through the real command; the library is a stub on the path."""

import pytest

from e2e_support import flakestorm, write_config
from upstream import Upstream, document

STUB = """
class SentenceTransformer:
    def __init__(self, name):
        pass

    def encode(self, texts):
        return [[1.0, 0.0] if "flying" in text or "confirmed" in text else [0.0, 1.0] for text in texts]
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "agent.py").write_text("def answer(text):\n    return 'All set, you are flying!'\n")

    def write(measure: str, expected: str = "Your trip is confirmed.", **blocks) -> None:
        rule = {"id": "means", "type": "similarity", "expected": expected, "measure": measure}
        write_config(
            tmp_path,
            agent={"type": "python", "endpoint": "agent:answer"},
            contract={"name": "x", "invariants": [rule], "chaos_matrix": [{"name": "calm"}]},
            **blocks,
        )

    return tmp_path, write


def test_other_words_for_the_same_are_recognised_by_meaning(project) -> None:
    folder, write = project
    write("words")
    assert flakestorm(folder, "contract", "run").code == 1
    library = folder / "library" / "sentence_transformers"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(STUB)
    import os

    env = {"PYTHONPATH": os.pathsep.join([str(folder / "library"), os.environ.get("PYTHONPATH", "")])}
    write("semantic")
    done = flakestorm(folder, "contract", "run", env=env, report=True)
    assert done.code == 0, done.err
    assert done.cell("calm", "means")["reason"] == "1.00 alike to the expected text; at least 0.8 wanted"
    write("semantic", expected="Your trip is not confirmed.")
    assert flakestorm(folder, "contract", "run", env=env).code == 1  # a denial stays one, whatever a model says


def test_without_the_extra_nothing_is_run_and_the_extra_is_named(project) -> None:
    folder, write = project
    write("semantic")
    for words in (["contract", "run"], ["contract", "validate"]):
        done = flakestorm(folder, *words)
        if done.code != 2:
            pytest.skip("sentence-transformers is installed here")
        assert "pip install 'flakestorm[semantic]'" in done.err
    assert not list(folder.glob("reports/*/tapes/*.tape"))


def test_the_configured_models_embeddings(project) -> None:
    folder, write = project
    with Upstream() as up:
        up.reply("/api/embed", document({"embeddings": [[1, 0], [1, 0.1]]}))
        write("model", model={"provider": "ollama", "name": "nomic", "base_url": up.url})
        assert flakestorm(folder, "contract", "run").code == 0
        up.reply("/api/embed", document({"oops": 1}))
        done = flakestorm(folder, "contract", "run", report=True)
        assert done.code == 3
        assert "in meaning is not known" in done.cell("calm", "means")["reason"]
    write("model")
    assert "none is configured" in flakestorm(folder, "contract", "run").err
