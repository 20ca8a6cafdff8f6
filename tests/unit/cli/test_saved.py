from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.cli.options import Globals
from flakestorm.cli.saved import both, report_named, saving, store_folder
from flakestorm.config import loads
from flakestorm.engine.events import Finished, Planned
from flakestorm.errors import Misuse
from flakestorm.reports.document import write_json
from report_samples import sample
from store_support import saved


def test_the_store_lies_beside_the_config(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_folder(Globals()) == tmp_path / ".flakestorm"
    assert store_folder(Globals(config=Path("app/f.yaml"))) == tmp_path / "app" / ".flakestorm"
    config = loads("agent: {endpoint: 'http://x'}\ngolden_prompts: [a]", folder=tmp_path / "other")
    assert store_folder(Globals(), config) == tmp_path / "other" / ".flakestorm"


def test_a_report_is_found_by_file_or_in_the_store(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(replace(sample(), seed=7), "x.json")
    with pytest.raises(Misuse, match="latest: no such file, and there is no store in"):
        report_named("latest", Globals())
    [id_] = saved(tmp_path / ".flakestorm", sample())
    assert report_named("x.json", Globals()).seed == 7
    assert report_named("latest", Globals()) == report_named(id_, Globals()) == sample()
    with pytest.raises(Misuse, match=r"y\.json: no such file, and no report 'y.json' in the store"):
        report_named("y.json", Globals())


def test_two_listeners_are_told_the_same(tmp_path) -> None:
    heard: list[object] = []
    with saving(tmp_path / "s") as save:
        tell = both(heard.append, save)
        tell(Planned("x", 0, replace(sample(), runs=(), cells=())))
        tell(Finished(sample()))
    assert len(heard) == 2
    assert save.id is not None
