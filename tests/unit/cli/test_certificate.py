from pathlib import Path

import pytest

from flakestorm.reports.document import write_json
from report_samples import sample
from store_support import saved, with_tapes
from unit_cli import run

CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "a:b"}
golden_prompts: [x]
contract: {name: travel, invariants: [{type: completes}], chaos_matrix: [{name: calm}]}
certificate: {tester_name: Ada, output_format: pdf}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLAKESTORM_SIGNING_KEY", raising=False)
    write_json(with_tapes(tmp_path / "tapes"), "x.json")
    return tmp_path


def test_options_may_stand_anywhere(folder) -> None:
    assert run("certificate", "x.json", "-o", "a.html") == 0
    assert run("certificate", "-o", "b.html", "x.json") == 0
    assert run("-o", "c.html", "certificate", "x.json") == 0
    assert sorted(p.name for p in folder.glob("?.html")) == ["a.html", "b.html", "c.html"]
    assert run("certificate", "verify", "b.dsse.json") == 0


def test_the_form_follows_the_file_then_format_then_config(folder) -> None:
    (folder / "flakestorm.yaml").write_text(CONFIG)
    for words, page in [
        (["-o", "a.html"], "a.html"),
        (["-o", "b.PDF"], "b.PDF"),
        (["-o", "c.dsse.json"], "c.pdf"),
        (["--format", "html"], "certificate.html"),
        ([], "certificate.pdf"),
    ]:
        assert run("certificate", "x.json", *words) == 0
        start = Path(page).read_bytes()[:5]
        assert start == (b"<!doc" if page.endswith("html") else b"%PDF-")
        assert run("certificate", "verify", page) == 0


def test_what_does_not_fit_is_refused(folder, capsys) -> None:
    for words, said in [
        (["x.json", "-o", "a.json"], "ends with .html or .pdf"),
        (["x.json", "-o", "a.html", "--format", "pdf"], "make them agree"),
        (["none"], "no such file"),
        (["x.json", "--format", "junit"], "Invalid value for '--format'"),
        (["verify", "none.dsse.json"], "cannot be read"),
        (["verify", "x.json", "--key", "abc"], "no public key"),
        (["x.json", "--key", "x.json"], "no key to sign with"),
    ]:
        assert run("certificate", *words) == 2
        assert said in capsys.readouterr().err


def test_a_saved_report_is_certified_by_the_stores_tapes(folder, capsys) -> None:
    [id_] = saved(folder / ".flakestorm", with_tapes(folder / "tapes", sample()))
    for tape in (folder / "tapes").iterdir():
        tape.unlink()
    assert run("certificate", id_, "-o", "a.html") == 0
    assert run("certificate", "verify", "a.dsse.json") == 0
    assert "8 tapes unchanged" in capsys.readouterr().out
    Path("elsewhere").mkdir()
    for name in ("a.html", "a.dsse.json"):
        Path(name).rename(Path("elsewhere", name))
    assert run("certificate", "verify", "elsewhere/a.dsse.json") == 1
    assert "the tape is missing" in capsys.readouterr().out
    assert run("certificate", "verify", "elsewhere/a.dsse.json", "--tapes", ".flakestorm/content") == 0


def test_no_certificate_is_exit_1(folder, capsys) -> None:
    assert run("certificate", "verify", "x.json") == 1
    assert "invalid: x.json: it is not a DSSE envelope" in capsys.readouterr().out


def test_the_help_tells_every_option_it_speaks_of(capsys) -> None:
    assert run("certificate", "--help") == 0
    said = capsys.readouterr().out
    assert "--key PATH" in said
    assert said.count("--format") == 2  # an example, and once in the list


def test_options_before_the_report_are_the_commands_own(folder, capsys) -> None:
    assert run("certificate", "x.json", "-o", "first.html") == 0
    assert run("certificate", "--key", "nowhere.pem", "x.json") == 2
    assert "nowhere.pem" in capsys.readouterr().err
    key = next(Path(".flakestorm").rglob("*.pem"), None) or next(
        p for p in Path(".flakestorm").rglob("*key*") if p.is_file()
    )
    assert run("certificate", "-q", f"--key={key}", "-o", "a.html", "x.json") == 0
    assert run("certificate", "--key", str(key), "x.json", "-o", "b.html") == 0
    assert run("certificate", "--tapes", "tapes", "-q", "verify", "b.dsse.json") == 0
    capsys.readouterr()
    assert run("certificate", "--key", "k.pem") == 2
    assert "certificate" in capsys.readouterr().err
    assert run("certificate", "--help") == 0
    assert "Options with REPORT.json|RUN" in capsys.readouterr().out
