"""The benchmarks run: each script, in its quick form, prints its rows. How fast anything was is not judged here."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = {
    "startup": ["flakestorm "],
    "matrix": ["flakestorm "],
    "boundary": ["flakestorm, anthropic", "flakestorm, openai"],
    "gateway": ["direct", "flakestorm gateway ", "flakestorm gateway, recording"],
    "explore": [
        "flakestorm",
        "every call at random, all remembered",
        "5% of calls at random",
        "one by one, then two by two",
    ],
    "explore_corpus": ["makes_up_a_price, bug", "makes_up_a_price, twin"],
    "blame": ["flakestorm, clean jump", "flakestorm, no culprit"],
    "scan": ["docs (", "package descriptions ("],
    "cells": ["20 cells", "100 cells"],
    "page": ["100 cells"],
    "soak": ["recording nothing", "of one run", "flakestorm gateway"],
}


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *words], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("name", ROWS)
def test_each_script_prints_its_rows(name: str) -> None:
    done = bench("--quick", name)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    for row in ROWS[name]:
        cells = next(line for line in lines if line.startswith(row)).removeprefix(row)
        assert any(sign.isdigit() for sign in cells)
    if name == "matrix":
        assert "holds: 4 invariants x 5 scenarios x 4 prompts are judged on 20 agent runs" in lines
    if name == "soak":
        assert "holds: every reply was what its upstream and its client made of it" in lines
        assert "holds: every exchange is on the tape once, with the end it had (300 and 300 of them)" in lines
        assert "holds: no task and no socket is left" in lines


def test_every_script_is_tested() -> None:
    from_help = bench("--help").stdout
    assert f"which to run: {', '.join(ROWS)}" in " ".join(from_help.split())


def test_an_unknown_name_is_refused() -> None:
    done = bench("matrx")
    assert done.returncode == 2
    assert f"unknown: matrx; there are {', '.join(ROWS)}" in done.stderr


def test_a_quick_run_is_never_written_into_a_document(tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text("as it was")
    done = bench("--quick", "--write", str(document))
    assert done.returncode == 2
    assert document.read_text() == "as it was"
