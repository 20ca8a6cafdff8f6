import re
from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.cli.forms import text
from flakestorm.cli.options import Globals
from flakestorm.cli.output import place_for, present
from flakestorm.cli.saved import saving
from flakestorm.config import loads
from report_samples import sample as sample_report


def config(folder: Path, **output: str):
    lines = "".join(f"  {k}: '{v}'\n" for k, v in output.items())
    text = f"agent: {{endpoint: 'http://x'}}\ngolden_prompts: [a]\noutput:\n  path: ./reports\n{lines}"
    return loads(text, folder=str(folder))


def test_each_command_gets_a_folder_of_its_own(tmp_path) -> None:
    first = place_for(Globals(), config(tmp_path), "contract run")
    first.folder.mkdir(parents=True)
    second = place_for(Globals(), config(tmp_path, filename_template=first.folder.name), "contract run")
    assert first.folder.parent == tmp_path / "reports"
    assert first.folder.name.endswith("-contract-run")
    assert second.folder.name == f"{first.folder.name}-2"
    assert first.tapes == first.folder / "tapes"


def test_one_file_has_its_tapes_beside_it(tmp_path) -> None:
    place = place_for(Globals(output=tmp_path / "x.json"), config(tmp_path), "chaos")
    assert (place.form, place.tapes) == ("json", tmp_path / "x.tapes")
    assert place_for(Globals(output=tmp_path / "x", format="html"), config(tmp_path), "chaos").form == "html"


def test_paths_are_absolute_from_the_start(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for options in (Globals(output=Path("x.json")), Globals()):
        place = place_for(options, config(Path()), "chaos")
        assert place.folder.is_relative_to(tmp_path)
        assert place.tapes.is_relative_to(tmp_path)


def test_the_folder_is_named_as_the_template_says(tmp_path) -> None:
    place = place_for(Globals(), config(tmp_path, filename_template="{date}_{time}_{command}_{x}"), "contract run")
    assert re.fullmatch(r"\d{8}_\d{6}_contract-run_\{x\}", place.folder.name)


def test_a_text_file_holds_the_summary(tmp_path, capsys) -> None:
    options = Globals(output=tmp_path / "x.txt")
    report = sample_report()
    present(report, place_for(options, config(tmp_path), "chaos"), options)
    assert report.verdict.upper() in (tmp_path / "x.txt").read_text()


@pytest.mark.parametrize(
    ("form", "file"), [("junit", "report.xml"), ("markdown", "report.md"), ("sarif", "report.sarif"), ("json", "")]
)
def test_the_form_the_config_names_lies_beside_the_json(tmp_path, capsys, form, file) -> None:
    place = place_for(Globals(), config(tmp_path, format=form), "chaos")
    present(sample_report(), place, Globals())
    assert {path.name for path in place.folder.iterdir()} == {"report.json", *filter(None, [file])}
    assert sample_report().headline in capsys.readouterr().out


@pytest.mark.parametrize("form", ["junit", "markdown", "sarif"])
def test_a_form_for_machines_without_a_file_is_printed_alone(tmp_path, capsys, form) -> None:
    options = Globals(format=form)
    report = sample_report()
    present(report, place_for(options, config(tmp_path), "chaos"), options)
    assert capsys.readouterr().out == text(report, form) + "\n"


def test_it_says_under_which_name_it_is_saved_or_why_it_is_not(tmp_path, capsys) -> None:
    save = saving(tmp_path / "store")
    save.id = "20260504-100000-ab12"
    place = place_for(Globals(), config(tmp_path), "chaos")
    present(sample_report(), place, Globals(), save)
    assert "saved: 20260504-100000-ab12" in capsys.readouterr().out
    save.id, save.problem = None, "the disk is full"
    present(sample_report(), place, Globals(), save)
    assert capsys.readouterr().err == "note: this report was not saved for later: the disk is full\n"


@pytest.mark.parametrize(
    ("options", "files"),
    [
        (Globals(output=Path("one.json")), ["one.json"]),
        (Globals(output=Path("one.html")), ["one.html"]),
        (Globals(output=Path("one.txt")), ["one.txt"]),
        (Globals(output=Path("one.log"), format="terminal"), ["one.log"]),
    ],
)
def test_one_file_is_written_as_asked(tmp_path, monkeypatch, capsys, options, files) -> None:
    monkeypatch.chdir(tmp_path)
    report = sample_report()
    assert present(report, place_for(options, config(tmp_path), "chaos"), options) == report.exit_code
    assert [p.name for p in tmp_path.iterdir()] == files
    assert report.headline.split()[0] in capsys.readouterr().out


def test_json_without_a_file_goes_to_stdout_and_nothing_else_does(tmp_path, capsys) -> None:
    import json

    options = Globals(format="json")
    place = place_for(options, config(tmp_path), "chaos")
    present(sample_report(), place, options)
    assert json.loads(capsys.readouterr().out)["format"] == "flakestorm-report/1"


def test_quiet_is_one_line(tmp_path, capsys) -> None:
    options = Globals(quiet=True)
    report = sample_report()
    present(report, place_for(options, config(tmp_path), "chaos"), options)
    assert capsys.readouterr().out == f"{report.verdict}: {report.headline}\n"


def test_quiet_obeys_no_escape_sequence(tmp_path, capsys) -> None:
    options = Globals(quiet=True)
    report = replace(sample_report(), headline="said \x1b]0;owned\x07 and\nmore")
    present(report, place_for(options, config(tmp_path), "chaos"), options)
    assert capsys.readouterr().out == f"{report.verdict}: said \\x1b]0;owned\\x07 and more\n"
