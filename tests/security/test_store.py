"""The store where the disk is full or may not be written to, or has many writers: an error in words, and a report."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e_support import FLAKESTORM, clean_env, flakestorm, write_config
from flakestorm.errors import Misuse
from flakestorm.store.sqlite import Store

AGENT = "def answer(text):\n    return 'x' * 200_000\n"
CONTRACT = {
    "name": "c",
    "invariants": [{"id": "answers", "type": "output_not_empty"}],
    "chaos_matrix": [{"name": "plain"}],
    "trials": 20,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "my_agent.py").write_text(AGENT)
    write_config(tmp_path, agent={"type": "python", "endpoint": "my_agent:answer"}, contract=CONTRACT)
    return tmp_path


@pytest.fixture
def small_disk(project: Path) -> Iterator[Path]:
    """The project's store lies on a file system of its own, of 1 MB."""
    place = project / ".flakestorm"
    place.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False).returncode
    ):
        pytest.skip("a small file system can be mounted by root only")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_costs_the_saved_report_and_nothing_else(project: Path, small_disk: Path) -> None:
    done = flakestorm(project, "contract", "run", report=True)
    assert done.code == 0
    assert done.report is not None
    assert len(done.report["runs"]) == 20
    assert "the disk is full; make room" in done.err
    (small_disk / "store.sqlite3").stat()
    entries = flakestorm(project, "report", "--format", "json")
    assert entries.code == 0, entries.err  # what there is can be read
    assert all(entry["done"] is False for entry in json.loads(entries.out)["reports"])


def test_a_limit_on_the_size_of_files_is_told_in_words(project: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512 * 1024, 512 * 1024))

    done = subprocess.run(
        [str(FLAKESTORM), "contract", "run", "--format", "terminal"], cwd=project, env=clean_env(), preexec_fn=limited,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "the report cannot be written: File too large; choose another -o" in done.stderr
    assert "Traceback" not in done.stderr


def test_where_nothing_may_be_written_the_report_still_comes(project: Path) -> None:
    (project / ".flakestorm").write_text("in its way")
    done = flakestorm(project, "contract", "run")
    assert done.code == 0, done.err
    assert "the store" in done.err
    assert "100" in done.out


def test_a_read_only_project_is_told_of_and_gets_its_report_elsewhere(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "report.json"
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", project, project], check=False).returncode:
        pytest.skip("a folder can be made read-only for root by a mount only")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", project], check=True)
        refused = flakestorm(project, "contract", "run")
        done = flakestorm(project, "contract", "run", "--format", "json", "-o", str(elsewhere))
    finally:
        subprocess.run(["umount", "-l", project], check=True)
    assert refused.code == 2
    assert "Read-only file system; choose another -o" in refused.err
    assert done.code == 0, done.err
    assert "Read-only file system" in done.err or "make the folder writable" in done.err
    assert len(json.loads(elsewhere.read_text())["runs"]) == 20


def _save(folder: str, number: int) -> None:
    with Store(Path(folder), write=True) as store:
        for n in range(10):
            run = {"id": f"r-{n}", "tape": f"{folder}/{number % 3}.tape"}
            id_ = store.begin(_document([]))
            store.add(id_, [_document([run])])
            store.finish(id_, _document([run]))


def _document(runs: list[dict[str, str]]) -> dict[str, object]:
    return {
        "command": "run", "config": "c", "started_at": "2026-11-22T07:36:45.000Z", "verdict": "pass", "exit_code": 0,
        "scores": {}, "cells": [], "runs": runs,
    }  # fmt: skip


def test_writers_side_by_side_lose_nothing(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"{n}.tape").write_bytes(b"%d" % n * 50_000)
    spawned = multiprocessing.get_context("spawn")
    writers = [spawned.Process(target=_save, args=(str(tmp_path), n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    with Store(tmp_path) as store:
        entries = store.entries()
        assert [(entry.done, entry.runs) for entry in entries] == [(True, 1)] * 40
        assert len({entry.id for entry in entries}) == 40
        kept = store.tapes()
    assert len({each.digest for each in kept}) == 3
    assert all(each.path.stat().st_size == 50_000 for each in kept)


def test_a_store_that_is_no_database_is_told_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite3").write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(Misuse, match="damaged or no database; move it away"):
        Store(tmp_path, write=True)


if sys.platform != "linux":
    pytestmark = pytest.mark.skip(reason="mounts and limits are Linux's")
