from pathlib import Path

import pytest

from corpus_support import Planted, corpus_world, found, manifest, project
from flakestorm import api
from flakestorm.errors import Misuse
from flakestorm.reports.document import to_document

ENTRY = next(entry for entry in manifest() if entry.name == "partial_json")
PATH = "/v1/chat/completions"


def explored(folder: Path, entry: Planted, up, which: str, *, reuse: bool) -> tuple[dict, int]:
    """The report, and how often the model was asked."""
    folder.mkdir()
    before = up.count(PATH)
    work = api.load(project(folder, entry, up, which=which))
    report = work.explore(api.Options(tapes=folder / "tapes"), modes=["error", "empty", entry.modes[0]], reuse=reuse)
    return to_document(report), up.count(PATH) - before


@pytest.mark.parametrize("which", ["bug", "twin"])
def test_the_model_is_asked_less_often_and_the_findings_are_the_same(tmp_path: Path, which: str) -> None:
    with corpus_world() as up:
        plain, asked = explored(tmp_path / "plain", ENTRY, up, which, reuse=False)
        spared, less = explored(tmp_path / "spared", ENTRY, up, which, reuse=True)
    assert found(spared) == found(plain)
    assert spared["coverage"] == plain["coverage"]
    assert len(spared["runs"]) == len(plain["runs"])
    (note,) = [note for note in spared["notes"] if "model calls were answered" in note]
    assert int(note.split()[0]) == asked - less > 0


def test_a_resumed_search_spares_them_too(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        part = work.explore(api.Options(tapes=tmp_path / "a"), modes=["error"], budget=3, reuse=True)
        whole = work.explore(api.Options(tapes=tmp_path / "b", resume=part), modes=["error", "empty"], reuse=True)
    (note,) = [note for note in whole.notes if "model calls were answered" in note]
    assert int(note.split()[0]) > 0


def test_a_rule_about_time_is_not_judged_by_replies_that_take_none(tmp_path: Path) -> None:
    with corpus_world() as up:
        path = project(tmp_path, ENTRY, up)
        path.write_text(path.read_text().replace("type: completes", "type: latency\n  max_ms: 5000"))
        with pytest.raises(Misuse, match="latency"):
            api.load(path).explore(api.Options(tapes=tmp_path / "tapes"), reuse=True)
