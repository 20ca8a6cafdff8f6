"""Two machines with one store: what one saves, the other shows, exports and resumes."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_support import bare, many_cells
from e2e_support import FLAKESTORM, clean_env, flakestorm
from postgres_support import MISSING, postgres, programs

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
