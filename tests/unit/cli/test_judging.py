import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from flakestorm.cli.judging import how, min_score_option, resume_option
from flakestorm.cli.options import Globals
from flakestorm.cli.output import Place
from unit_cli import ECHO, run


def test_the_global_options_become_those_of_the_api(tmp_path: Path) -> None:
    place = Place("html", None, tmp_path, tmp_path / "tapes", stdout=False)
    told = how(Globals(seed=7, trials=3, concurrency=2), place, min_score=0.5)
    assert (told.seed, told.trials, told.concurrency, told.tapes, told.ray) == (7, 3, 2, tmp_path / "tapes", None)
    assert told.min_score == 0.5


@pytest.mark.parametrize(("score", "code"), [("0.5", 0), ("1", 0), ("1.1", 2), ("-1", 2)])
def test_a_least_score_lies_on_the_scale_of_its_command(score: str, code: int) -> None:
    @click.command()
    @min_score_option("the least of it", full=1)
    @resume_option
    def judge(min_score: float | None, resume: str | None) -> None:
        click.echo(f"{min_score} {resume}")

    done = CliRunner().invoke(judge, ["--min-score", score, "--resume", "latest"])
    assert done.exit_code == code
    assert code or done.output == f"{float(score)} latest\n"


def test_a_dry_run_says_what_would_be_made_and_makes_nothing(folder, capsys) -> None:
    (folder / "flakestorm.yaml").write_text(f"{ECHO}output: {{format: json}}\n")
    assert run("contract", "run", "--dry-run") == 0
    assert "2 runs would be made" in capsys.readouterr().out
    assert not (folder / "reports").exists()


def test_a_command_does_not_pay_for_the_options_of_others() -> None:
    code = "import sys, flakestorm.cli.contract\nprint('flakestorm.cli.judge' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
