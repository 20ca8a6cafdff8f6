"""Runs on a Ray cluster: the same report as here, whatever happens to the workers."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_support import bare, carrying, cluster, kill, many_cells, of_session, parent_of
from e2e_support import FLAKESTORM, PROGRAMS, clean_env, flakestorm, wait_until, write_config
from flakestorm.tape.reader import Tape

ON_RAY = ("--executor", "ray", "--workers", "2")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the cluster is looked at through /proc"),
    pytest.mark.xdist_group("ray"),
]


@pytest.fixture(scope="module")
def ray() -> Iterator[dict[str, str]]:
    pytest.importorskip("ray", reason="ray is not installed for this Python")
    with cluster() as found:
        yield found


def contract(folder: Path, *args: str, env: dict[str, str] | None = None) -> Any:
    done = flakestorm(folder, "contract", "run", *args, env=env, report=True)
    assert done.report is not None, done.err
    return done


def digests(folder: Path) -> dict[str, str]:
    return {tape.name: Tape.open(tape).footer.digest for tape in sorted((folder / "out" / "report.tapes").iterdir())}


def test_500_cells_are_judged_alike_here_on_a_cluster_and_with_a_worker_killed_halfway(
    tmp_path: Path, ray: dict[str, str]
) -> None:
    project = tmp_path / "project"
    many_cells(project)
    here = contract(project, "--all-trials")
    tapes = digests(project)
    shutil.rmtree(project / "out")
    there = contract(project, "--all-trials", *ON_RAY, env=ray)
    assert digests(project) == tapes
    shutil.rmtree(project / "out")
    (project / "deadly").touch()
    hurt = contract(project, "--all-trials", *ON_RAY, env=ray)
    assert (project / "dead").exists()
    assert digests(project) == tapes
    assert here.report is not None
    assert len(here.report["cells"]) == 500
    assert len(here.report["runs"]) == len(tapes) == 255  # five of them without chaos, to compare with
    assert {cell["verdict"] for cell in here.report["cells"]} == {"pass", "fail", "inconclusive"}
    assert bare(there.report) == bare(here.report)
    assert bare(hurt.report) == bare(here.report)
    assert here.code == there.code == hurt.code == 1


def test_rounds_and_budgets_are_kept(tmp_path: Path, ray: dict[str, str]) -> None:
    many_cells(tmp_path, trials=12)
    here = contract(tmp_path, "--early-stop")
    there = contract(tmp_path, "--early-stop", *ON_RAY, env=ray)
    assert len(here.report["runs"]) < 300
    assert bare(there.report) == bare(here.report)
    few = contract(tmp_path, "--max-runs", "7", *ON_RAY, env=ray)
    assert len(few.report["runs"]) == 7


def test_the_commands_of_the_page_run(tmp_path: Path, ray: dict[str, str]) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "run-on-a-cluster.md").read_text()
    commands = [shlex.split(line, comments=True)[1:] for line in page.splitlines() if "--executor ray  " in line]
    commands += [shlex.split(line, comments=True)[1:] for line in page.splitlines() if "--address head:6379" in line]
    assert len(commands) == 2
    many_cells(tmp_path, trials=1)
    address = ray["RAY_ADDRESS"]
    for words in commands:
        words = [address if word == "head:6379" else word for word in words]
        env = {name: value for name, value in ray.items() if name != "RAY_ADDRESS" or "--address" not in words}
        done = flakestorm(tmp_path, *words, env=env, report=True)
        assert done.report is not None, done.err
        assert len(done.report["cells"]) == 50


def test_agents_end_with_their_worker_and_with_an_interruption_and_what_is_left_is_resumed(
    tmp_path: Path, ray: dict[str, str]
) -> None:
    program = tmp_path / "slow_agent.py"
    program.write_text((PROGRAMS / "waiting_agent.py").read_text())
    write_config(
        tmp_path,
        agent={
            "type": "http",
            "start": [sys.executable, str(program), "--port", "{port}"],
            "endpoint": "http://127.0.0.1:{port}/invoke",
            "ready": "http://127.0.0.1:{port}/health",
            "request_template": '{"input": "{prompt}"}',
            "response_path": "output",
        },
        contract={
            "name": "waits",
            "invariants": [{"id": "answers", "type": "output_not_empty"}],
            "chaos_matrix": [{"name": "calm"}],
            "trials": 8,
        },
        advanced={"seed": 1},
    )
    # A cluster of its own: all its processes are in the session of the command, and must be gone with it.
    words = [str(FLAKESTORM), "contract", "run", *ON_RAY, "--format", "json", "-o", "out/report.json"]
    command = subprocess.Popen(
        words, cwd=tmp_path, env=clean_env(), start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    tapes, mark = tmp_path / "out" / "report.tapes", str(program)
    (tmp_path / "go").write_text("2")
    wait_until(lambda: tapes.is_dir() and len(list(tapes.iterdir())) == 2 and len(carrying(mark)) == 2)
    first = carrying(mark)
    kill(parent_of(first[0]))
    wait_until(lambda: first[0] not in carrying(mark) and len(carrying(mark)) == 2)
    (tmp_path / "go").write_text("4")
    wait_until(lambda: len(list(tapes.iterdir())) == 4)
    os.killpg(command.pid, signal.SIGINT)
    said, _ = command.communicate(timeout=60)
    assert command.returncode == 130, said
    wait_until(lambda: not of_session(command.pid))
    assert carrying(mark) == []
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len(report["runs"]) == 4
    (tmp_path / "go").write_text("99")
    done = contract(tmp_path, *ON_RAY, "--resume", "out/report.json", env=ray)
    assert (done.code, len(done.report["runs"])) == (0, 8)
    assert int((tmp_path / "asked").read_text()) <= 8 + 1 + 2  # once lost, and twice interrupted


def test_where_ray_is_missing_the_extra_is_named(tmp_path: Path) -> None:
    many_cells(tmp_path / "project", trials=1)
    (tmp_path / "hidden" / "ray").mkdir(parents=True)
    (tmp_path / "hidden" / "ray" / "__init__.py").write_text("raise ImportError('no ray here')\n")
    path = os.pathsep.join((str(tmp_path / "hidden"), os.environ.get("PYTHONPATH", "")))
    done = flakestorm(tmp_path / "project", "contract", "run", "--executor", "ray", env={"PYTHONPATH": path})
    assert done.code == 2
    assert "--executor ray needs the extra 'ray'" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explore", "--executor", "ray"), "`explore` is carried out here only"),
        (("contract", "run", "--workers", "2"), "add --executor ray"),
        (("contract", "run", "--address", "auto"), "add --executor ray"),
        (("contract", "run", "--executor", "ray", "--address", "127.0.0.1:1"), "no Ray cluster at 127.0.0.1:1"),
    ],
)
def test_what_workers_cannot_do_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    many_cells(tmp_path, trials=1)
    done = flakestorm(tmp_path, *words)
    assert done.code == 2
    assert said in done.err
