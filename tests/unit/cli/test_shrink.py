from pathlib import Path

import pytest

from unit_cli import run

pytestmark = pytest.mark.usefixtures("nobody")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("nothing.json#r-0001", "no such file"),
        ("bad.yaml", "not a session"),
        ("broken.yaml", "not a session"),
        ("report.json", "format"),
    ],
)
def test_what_is_no_case_is_refused(case: str, said: str, capsys) -> None:
    Path("bad.yaml").write_text("{")
    Path("broken.yaml").write_text("{id: x, input: hi, unknown: 1}")
    Path("report.json").write_text("{}")
    assert run("shrink", case) == 2
    assert said in capsys.readouterr().err
