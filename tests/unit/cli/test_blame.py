from pathlib import Path

import pytest

from unit_cli import run

CONFIG = (
    'version: "2.0"\nagent: {endpoint: "http://127.0.0.1:9"}\ngolden_prompts: [hi]\ninvariants: [{type: completes}]\n'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flakestorm.yaml").write_text(CONFIG)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.tape", "no such file"),
        ("r-0007", "nothing was saved yet"),
        ("report.json", "not a valid flakestorm-report/1"),
        ("flakestorm.yaml", "not a tape"),
        ("flakestorm.yaml#r-0001", "is not a report"),
    ],
)
def test_what_is_no_run_is_refused(name: str, said: str, capsys) -> None:
    Path("report.json").write_text('{"format": "flakestorm-report/1"}')
    assert run("blame", name) == 2
    assert said in capsys.readouterr().err
