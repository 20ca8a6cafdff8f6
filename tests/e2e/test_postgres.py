"""Two machines with one store: what one saves, the other shows, exports and resumes."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cluster_support import bare, many_cells
from e2e_support import FLAKESTORM, Done, clean_env, flakestorm, write_config
from postgres_support import MISSING, NOBODY_ELSE, postgres, programs

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    if programs() is None:
        pytest.skip(MISSING)
    with postgres() as address:
        yield {"FLAKESTORM_STORE": address}


def test_what_one_machine_saves_another_shows_exports_and_resumes(tmp_path: Path, server: dict[str, str]) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for machine in (here, there):
        many_cells(machine, trials=1)
    first = flakestorm(here, "contract", "run", "--max-runs", "12", env=server, report=True)
    assert first.report is not None
    assert len(first.report["runs"]) == 12
    assert not (here / ".flakestorm" / "store.sqlite3").exists()
    shown = json.loads(flakestorm(there, "report", "latest", "--format", "json", env=server).out)
    assert bare(shown) == bare(first.report)
    assert all(Path(run["tape"]).is_relative_to(there) for run in shown["runs"])
    flakestorm(there, "tapes", "export", "latest", "-o", "copies", env=server)
    assert len(list((there / "copies").iterdir())) == 12
    whole = flakestorm(tmp_path / "here", "contract", "run", env=server, report=True)
    rest = flakestorm(there, "contract", "run", "--resume", shown_id(there, server), env=server, report=True)
    assert rest.report is not None
    assert whole.report is not None
    assert [cell["verdict"] for cell in rest.report["cells"]] == [cell["verdict"] for cell in whole.report["cells"]]


AGENT = """
import os

def answer(text):
    return os.urandom(100_000).hex()
"""
LEAVING = """
import itertools, os, psycopg

calls = itertools.count()

def answer(text):
    if next(calls) == 5:
        with psycopg.connect(os.environ["FLAKESTORM_STORE"], autocommit=True) as db:
            while not begun(db):
                pass
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'flakestorm'")
    return "fine"

def begun(db):
    (there,) = db.execute("SELECT to_regclass('flakestorm.reports') IS NOT NULL").fetchone()
    return there and db.execute("SELECT count(*) FROM flakestorm.reports").fetchone()[0] == 1
"""


def one_agent(folder: Path, code: str) -> Path:
    """A project of twenty runs, one after the other."""
    (folder / "my_agent.py").write_text(code)
    rule = {"id": "answers", "type": "output_not_empty"}
    contract = {"name": "c", "invariants": [rule], "chaos_matrix": [{"name": "plain"}], "trials": 20}
    agent = {"type": "python", "endpoint": "my_agent:answer"}
    return write_config(folder, agent=agent, contract=contract, advanced={"concurrency": 1, "seed": 1})


@contextmanager
def database(server: dict[str, str], name: str, setting: str) -> Iterator[dict[str, str]]:
    """Another database of the server, whose sessions begin with this setting."""
    with psycopg.connect(server["FLAKESTORM_STORE"], autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
        db.execute(f"ALTER DATABASE {name} SET {setting}")
        try:
            yield {"FLAKESTORM_STORE": server["FLAKESTORM_STORE"].replace("/postgres?", f"/{name}?")}
        finally:
            db.execute(f"DROP DATABASE {name} WITH (FORCE)")


def whole_but_not_saved(done: Done) -> str:
    """What a command said that made its report and could not keep it."""
    assert done.code == 0, done.err
    assert done.report is not None
    assert (len(done.report["runs"]), done.report["verdict"]) == (20, "pass")
    assert "this report was not saved for later: the store postgresql://" in done.err
    return done.err


def test_a_full_disk_of_the_server_costs_the_saved_report_and_nothing_else(
    tmp_path: Path, server: dict[str, str]
) -> None:
    place = Path(tempfile.mkdtemp(prefix="flakestorm-pg-", dir="/tmp"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        place.rmdir()
        pytest.skip("a small file system can be mounted by root only")
    (place / "space").mkdir()
    shutil.chown(place / "space", NOBODY_ELSE)
    try:
        with psycopg.connect(server["FLAKESTORM_STORE"], autocommit=True) as db:
            db.execute(f"CREATE TABLESPACE small LOCATION '{place / 'space'}'")
            one_agent(tmp_path, AGENT)
            with database(server, "crowded", "default_tablespace = small") as env:
                done = flakestorm(tmp_path, "contract", "run", env=env, report=True)
                left = flakestorm(tmp_path, "report", "--format", "json", env=env)
            db.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()
    assert "the disk is full; make room" in whole_but_not_saved(done)
    assert left.code == 0, left.err  # what there is can be read
    assert [entry["done"] for entry in json.loads(left.out)["reports"]] in ([], [False])


def test_a_server_that_may_not_be_written_to_is_told_of(tmp_path: Path, server: dict[str, str]) -> None:
    one_agent(tmp_path, AGENT)
    with database(server, "standby", "default_transaction_read_only = on") as env:
        done = flakestorm(tmp_path, "contract", "run", env=env, report=True)
    assert "in a read-only transaction" in whole_but_not_saved(done)


def test_a_server_that_goes_away_in_the_middle_costs_the_saved_report_alone(
    tmp_path: Path, server: dict[str, str]
) -> None:
    one_agent(tmp_path, LEAVING)
    with database(server, "leaving", "default_transaction_read_only = off") as env:
        done = flakestorm(tmp_path, "contract", "run", env=env, report=True)
        (kept,) = json.loads(flakestorm(tmp_path, "report", "--format", "json", env=env).out)["reports"]
    told = whole_but_not_saved(done)  # in the server's words, where they are read before the next ones are sent
    assert "terminating connection" in told or "server closed the connection" in told
    assert kept["done"] is False


def shown_id(folder: Path, server: dict[str, str]) -> str:
    """The oldest report in the store."""
    listed = json.loads(flakestorm(folder, "report", "--format", "json", env=server).out)
    return str(listed["reports"][-1]["id"])


def test_a_store_that_cannot_be_had_costs_the_saved_report_alone(tmp_path: Path) -> None:
    many_cells(tmp_path, trials=1)
    done = flakestorm(tmp_path, "contract", "run", env={"FLAKESTORM_STORE": "postgresql://127.0.0.1:1/x"}, report=True)
    assert done.code == 1
    assert "this report was not saved for later: the store postgresql://127.0.0.1:1/x" in done.err


def test_the_script_of_the_page_runs(tmp_path: Path, server: dict[str, str]) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "run-on-a-cluster.md").read_text()
    (script,) = (block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "FLAKESTORM_STORE" in block)
    script = script.replace("postgresql://flakestorm@db.internal/reports", f"'{server['FLAKESTORM_STORE']}'")
    script = script.replace("flakestorm contract run", f"{FLAKESTORM} contract run || test $? = 1")
    script = script.replace("\nflakestorm ", f"\n{FLAKESTORM} ")
    many_cells(tmp_path, trials=1)
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=clean_env(), capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "tapes").iterdir())) == 30
