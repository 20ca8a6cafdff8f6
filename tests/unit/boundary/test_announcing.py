"""Standing gateways are found where they are named, and nowhere else."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from flakestorm.boundary.announcing import announce, places, withdraw

HERE = "http://127.0.0.1:4711/r/TOKEN"


def test_places_are_named_by_the_environment_and_then_by_the_stores(tmp_path: Path) -> None:
    announce(tmp_path / "store", HERE.replace("TOKEN", "STORED"))
    environ = {
        "OPENAI_BASE_URL": f"{HERE}/p/openai/v1",
        "ANTHROPIC_BASE_URL": f"{HERE}/p/anthropic",
        "OLLAMA_HOST": "http://127.0.0.1:11434",
        "FLAKESTORM_GATEWAY": HERE.replace("TOKEN", "NAMED"),
        "ELSEWHERE": HERE.replace("TOKEN", "OTHER"),
    }
    found = [url.rpartition("/")[2] for url in places(environ, [tmp_path / "missing", tmp_path / "store"])]
    assert found == ["NAMED", "TOKEN", "STORED"]


def test_an_announcement_is_private_and_is_taken_back_by_its_own_gateway_only(tmp_path: Path) -> None:
    store = tmp_path / "store"
    announce(store, HERE)
    assert stat.S_IMODE((store / "gateway").stat().st_mode) == 0o600
    announce(store, f"{HERE}2")
    withdraw(store, HERE)
    assert list(places({}, [store])) == [f"{HERE}2"]
    withdraw(store, f"{HERE}2")
    withdraw(store, f"{HERE}2")
    assert list(store.iterdir()) == []


def test_looking_imports_nothing_that_a_gateway_is_made_of() -> None:
    code = (
        "import sys; from flakestorm.boundary.announcing import places; list(places({}, [])); "
        "assert not {'aiohttp', 'flakestorm.boundary.gateway'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
