import asyncio
import sys
from pathlib import Path

import pytest

from flakestorm.api.launching import demand, launch
from flakestorm.boundary.session import Crossing
from flakestorm.core.pipeline import chain
from flakestorm.errors import Misuse


def run(script: str, cwd: Path, stdin: bytes = b""):
    line = Crossing("r", chain())
    return asyncio.run(launch([sys.executable, "-c", script], cwd=cwd, line=line, stdin=stdin, quiet=True))


def test_streams_and_exit_code(tmp_path, capfd) -> None:
    ran = run("import sys, os; print(sys.stdin.read() + os.getcwd()); sys.exit(3)", tmp_path, b"in ")
    assert (ran.code, ran.output, ran.stdin) == (3, f"in {tmp_path}\n", b"in ")
    assert ran.error == "the command exited with code 3"
    assert capfd.readouterr().out == ""


def test_a_command_that_reads_nothing_or_dies_by_a_signal(tmp_path) -> None:
    assert run("pass", tmp_path, b"x" * 1_000_000).error is None
    assert run("import os; os.kill(os.getpid(), 9)", tmp_path).code == 137


def test_it_is_given_the_whole_environment_of_launched_agents(tmp_path) -> None:
    names = ("OPENAI_BASE_URL", "HTTP_PROXY", "FLAKESTORM_RUN", "FLAKESTORM_GATEWAY", "PYTHONPATH")
    ran = run(f"import os; print(all(os.environ.get(n) for n in {names}))", tmp_path)
    assert ran.output == "True\n"


def test_what_cannot_be_run_is_refused_first(tmp_path) -> None:
    demand([sys.executable], tmp_path)
    for argv, cwd, told in (([], tmp_path, "--"), (["none"], tmp_path, "none"), (["ls"], tmp_path / "x", "folder")):
        with pytest.raises(Misuse, match=told):
            demand(argv, cwd)
