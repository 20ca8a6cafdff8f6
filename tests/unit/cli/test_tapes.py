import json
from pathlib import Path

import click
import pytest

from flakestorm.cli.tapes import tapes
from flakestorm.core.ledger import Ledger
from flakestorm.importers.files import AUTO, FORMS
from flakestorm.tape.writer import Recorder
from importers_support import cassette, request, response, write_yaml
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
