import json
import shutil
from dataclasses import replace
from pathlib import Path

import click
import pytest

from flakestorm.cli.tapes import tapes
from flakestorm.core.ledger import Ledger
from flakestorm.importers.files import AUTO, FORMS
from flakestorm.tape.writer import Recorder
from importers_support import cassette, request, response, write_yaml
from report_samples import sample
from store_support import saved
from unit_cli import run


def record(path: Path, *, text: str = "hello") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"run": path.stem, "input": text}
    Recorder(path, clock=lambda: 0.0, ledger=Ledger(), header=header).close(output="bye")
    return path


@pytest.fixture
def tape(tmp_path):
    return record(tmp_path / "r-0001.tape")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_show_prints_text_or_the_documented_object(tape, tmp_path, capsys) -> None:
    assert run("tapes", "show", str(tape)) == 0
    assert "hello" in capsys.readouterr().out
    assert run("tapes", "show", str(tape), "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["format"], shown["input"], shown["output"]) == ("flakestorm-tape/1", "hello", "bye")
    assert run("tapes", "show", str(tape), "--format", "json", "-o", str(tmp_path / "x" / "t.json")) == 0
    assert json.loads((tmp_path / "x" / "t.json").read_text()) == shown


def test_what_is_no_tape_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "x.tape").write_text("hello")
    assert run("tapes", "show", str(tmp_path / "x.tape")) == 2
    assert run("tapes", "show", str(tmp_path / "none.tape")) == 2
    assert "none.tape" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_named(tape, capsys) -> None:
    assert run("tapes", "show", str(tape), "-o", str(tape / "x")) == 2
    assert "it cannot be written" in capsys.readouterr().err


def test_alone_it_lists_the_tapes_of_reports_and_store(folder, capsys) -> None:
    assert run("tapes") == 0
    assert "no tapes in reports or .flakestorm" in capsys.readouterr().err
    record(folder / "reports" / "1" / "tapes" / "r-0001.tape", text="a flight\nto Oslo\x1b[2J")
    record(folder / ".flakestorm" / "tapes" / "x.tape", text="z" * 99)
    assert run("tapes") == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["TAPE", "RUN", "EXCHANGES", "INPUT"]
    assert first.split() == ["reports/1/tapes/r-0001.tape", "r-0001", "0", "a", "flight", "to", "Oslo\\x1b[2J"]
    assert second.split() == [".flakestorm/tapes/x.tape", "x", "0", "z" * 59 + "…"]


def test_the_list_as_json_and_of_a_folder(folder, capsys) -> None:
    record(folder / "mine" / "a.tape")
    assert run("tapes", "list", "mine", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "format": "flakestorm-tapes/1",
        "tapes": [{"tape": "mine/a.tape", "run": "a", "input": "hello", "exchanges": 0, "complete": True}],
        "refused": [],
    }
    assert run("tapes", "list", "mine", "-o", "list.txt") == 0
    assert "mine/a.tape" in (folder / "list.txt").read_text()
    assert run("tapes", "list", "none") == 2


def test_the_report_folder_is_the_one_the_config_names(folder, capsys) -> None:
    config = {"version": "2.0", "agent": {"endpoint": "http://127.0.0.1:9/"}, "golden_prompts": ["hi"]}
    (folder / "app").mkdir()
    (folder / "app" / "flakestorm.yaml").write_text(json.dumps(config | {"output": {"path": "./out"}}))
    record(folder / "app" / "out" / "x.tape")
    record(folder / "reports" / "y.tape")
    assert run("-c", "app/flakestorm.yaml", "tapes") == 0
    out = capsys.readouterr().out
    assert "app/out/x.tape" in out
    assert "reports/y.tape" not in out
    assert run("tapes", "-c", "none.yaml") == 2


def test_a_damaged_tape_is_named_beside_the_list(folder, capsys) -> None:
    record(folder / "reports" / "good.tape")
    bad = record(folder / "reports" / "bad.tape")
    bad.write_bytes(bad.read_bytes().replace(b"bye", b"bad"))
    assert run("tapes") == 2
    said = capsys.readouterr()
    assert "reports/good.tape" in said.out
    assert said.err.startswith("error: reports/bad.tape:2: ")
    assert said.err.count("\n") == 1
    assert run("tapes", "--format", "json") == 2
    assert len(json.loads(capsys.readouterr().out)["refused"]) == 1


def test_import_makes_one_tape_per_file(folder, capsys) -> None:
    first = write_yaml(folder / "first.yaml", cassette())
    second = folder / "second.json"
    search = request(method="GET", uri="https://flights.test/search", body=None)
    second.write_text(json.dumps(cassette((request(), response()), (search, response()))))
    assert run("tapes", "import", str(first), str(second), "--from", "vcr", "-o", "out") == 0
    assert capsys.readouterr().out.splitlines() == [
        "out/first.tape: 1 exchange (1 llm)",
        "out/second.tape: 2 exchanges (1 llm, 1 http)",
    ]
    assert run("tapes", "show", "out/second.tape", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["exchanges"][0]["reply"]["text"] == "Høyt ☃"
    assert run("tapes", "show", "out/first.tape") == 0
    assert "from   ../first.yaml (imported; it tells no times)" in capsys.readouterr().out
    assert sorted(path.name for path in Path("out").iterdir()) == ["first.tape", "second.tape"]


def test_imports_go_to_the_store_and_are_listed(folder, capsys) -> None:
    write_yaml(folder / "a.yaml", cassette())
    assert run("tapes", "import", "a.yaml") == 0
    capsys.readouterr()
    assert run("tapes") == 0
    assert ".flakestorm/tapes/a.tape" in capsys.readouterr().out


def test_a_config_that_is_named_names_the_tools(folder, capsys) -> None:
    write_yaml(folder / "a.yaml", cassette((request(method="GET", uri="https://x.test/search?q=1"), response())))
    config = {"version": "2.0", "agent": {"endpoint": "http://127.0.0.1:9/"}, "golden_prompts": ["hi"]}
    (folder / "flakestorm.yaml").write_text(json.dumps(config | {"boundary": {"tools": {"search": "*/search*"}}}))
    assert run("tapes", "import", "a.yaml", "-o", "plain") == 0
    assert run("tapes", "import", "a.yaml", "-o", "named", "-c", "flakestorm.yaml") == 0
    assert [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "1 exchange (1 http)",
        "1 exchange (1 tool)",
    ]


def test_a_refusal_is_one_line_and_does_not_stop_the_others(folder, capsys) -> None:
    (folder / "evil\x1b[31m.yaml").write_text("a: !!python/object/apply:os.system [echo]")
    write_yaml(folder / "good.yaml", cassette())
    assert run("tapes", "import", "evil\x1b[31m.yaml", "none.yaml", "good.yaml", "-o", "out") == 2
    said = capsys.readouterr()
    assert said.out == "out/good.tape: 1 exchange (1 llm)\n"
    evil, none = said.err.splitlines()
    assert evil.startswith("error: evil\\x1b[31m.yaml: line 1: the YAML tag ")
    assert none == "error: none.yaml: it cannot be read: No such file or directory"
    assert run("tapes", "import") == 2
    assert run("tapes", "import", "good.yaml", "--from", "nothing") == 2


def test_the_forms_offered_are_the_ones_there_are() -> None:
    command = tapes.commands["import"]
    [form] = [p for p in command.params if p.name == "form"]
    assert isinstance(form.type, click.Choice)
    assert list(form.type.choices) == [AUTO, *FORMS]


def keep(folder: Path) -> str:
    """A saved report of one run with a tape; gives its id."""
    tape = record(folder / "reports" / "1" / "tapes" / "r-0001.tape", text="a flight to Oslo")
    base = sample()
    [id_] = saved(folder / ".flakestorm", replace(base, runs=(replace(base.runs[0], tape=str(tape)),)))
    return id_


def test_a_tape_is_listed_once_and_stays_when_its_folder_goes(folder, capsys) -> None:
    id_ = keep(folder)
    assert run("tapes") == 0
    out = capsys.readouterr().out
    assert "reports/1/tapes/r-0001.tape" in out
    assert id_ not in out
    shutil.rmtree(folder / "reports")
    assert run("tapes") == 0
    assert f"{id_}/r-0001  r-0001  0          a flight to Oslo" in capsys.readouterr().out
    assert run("tapes", "show", f"{id_}/r-0001") == 0
    assert "a flight to Oslo" in capsys.readouterr().out


def test_a_tape_that_was_written_over_is_still_there(folder, capsys) -> None:
    id_ = keep(folder)
    record(folder / "reports" / "1" / "tapes" / "r-0001.tape", text="something else")
    assert run("tapes") == 0
    assert f"{id_}/r-0001" in capsys.readouterr().out
    assert run("tapes", "export", f"{id_}/r-0001", "-o", "mine") == 0
    assert capsys.readouterr().out == "mine/r-0001.tape\n"
    assert run("tapes", "show", "mine/r-0001.tape") == 0
    assert "a flight to Oslo" in capsys.readouterr().out


def test_export_takes_what_is_there_and_names_what_is_not(folder, capsys) -> None:
    keep(folder)
    assert run("tapes", "export", "latest", "-o", "all") == 0
    assert [path.name for path in Path("all").iterdir()] == ["r-0001.tape"]
    assert run("tapes", "export", "latest/r-0009") == 2
    assert "the store has no such tape" in capsys.readouterr().err
    assert run("tapes", "export", "nothing") == 2
    (folder / "file").write_text("")
    assert run("tapes", "export", "latest", "-o", "file") == 2
    assert "it cannot be written" in capsys.readouterr().err


def test_prune_says_what_went_and_wants_to_be_told_what_may_go(folder, capsys) -> None:
    assert run("tapes", "prune", "--keep", "1") == 2
    assert not (folder / ".flakestorm").exists()
    keep(folder)
    keep(folder)
    assert run("tapes", "prune") == 2
    assert "say what may go" in capsys.readouterr().err
    assert run("tapes", "prune", "--keep", "0", "--older-than", "100000") == 0
    assert capsys.readouterr().out.startswith("removed 0 reports, 0 tapes")
    assert run("tapes", "prune", "--keep", "1") == 0
    assert capsys.readouterr().out == "removed 1 report, 0 tapes (0 bytes)\n"
    assert run("tapes", "prune", "--keep", "0") == 0
    assert capsys.readouterr().out.startswith("removed 1 report, 1 tape (")
    assert (folder / "reports" / "1" / "tapes" / "r-0001.tape").exists()


def test_a_damaged_store_is_named_beside_the_list(folder, capsys) -> None:
    id_ = keep(folder)
    shutil.rmtree(folder / "reports" / "1")
    record(folder / "reports" / "good.tape")
    [kept] = [path for path in (folder / ".flakestorm" / "content").rglob("*") if path.is_file()]
    kept.write_bytes(kept.read_bytes().replace(b"bye", b"bad"))
    assert run("tapes") == 2
    said = capsys.readouterr()
    assert "reports/good.tape" in said.out
    assert id_ not in said.out
    assert str(kept) in said.err
    for file in (folder / ".flakestorm").glob("store.sqlite3*"):
        file.write_bytes(b"no database" * 1000)
    assert run("tapes") == 2
    said = capsys.readouterr()
    assert "reports/good.tape" in said.out
    assert "it is damaged or no database" in said.err
