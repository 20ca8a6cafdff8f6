from pathlib import Path

import pytest

from unit_cli import run

pytestmark = pytest.mark.usefixtures("nobody")


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
