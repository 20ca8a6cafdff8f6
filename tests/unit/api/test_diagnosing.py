from __future__ import annotations

from pathlib import Path

import pytest

from flakestorm.api import Options, Project
from flakestorm.api.diagnosing import Diagnosis, diagnose
from flakestorm.config.model import Config
from flakestorm.errors import ConfigError, Misuse

HEAD = """
import pathlib, time, uuid
def number():
    "How often this was asked before, in whatever process."
    kept = pathlib.Path(__file__).with_suffix(".count")
    n = len(kept.read_text()) if kept.exists() else 0
    kept.write_text("." * (n + 1))
    return n
"""


def doctor(folder: Path, code: str, name: str, replays: int = 2, **agent: object) -> Diagnosis:
    (folder / f"{name}.py").write_text(HEAD + code)
    block = {"type": "python", "endpoint": f"{name}:answer", **agent}
    config = Config.of({"version": "2.0", "agent": block, "golden_prompts": ["go"]}).at(str(folder))
    return diagnose(Project(config, folder / "flakestorm.yaml"), Options(tapes=folder / "tapes"), replays=replays)


def test_an_agent_whose_draws_are_all_virtual_is_deterministic(tmp_path: Path) -> None:
    found = doctor(tmp_path, "def answer(text): return f'{text} {uuid.uuid4()} {time.time()}'", "doctor_steady")
    assert (found.exit_code, found.findings) == (0, ())
    assert [run.id for run in found.runs] == ["doctor", "doctor-replay-1", "doctor-replay-2"]
    assert any("no call crossed" in note for note in found.notes)


def test_what_differs_is_found_in_every_replay(tmp_path: Path) -> None:
    found = doctor(tmp_path, "def answer(text): return f'number {number()}'", "doctor_counting")
    assert found.exit_code == 1
    (finding,) = found.findings
    assert (finding.difference.site, finding.replays) == ("output", (1, 2))
    assert (finding.difference.recorded, finding.difference.replayed) == ("number 0", "number 1")


def test_a_crash_is_compared_like_an_answer(tmp_path: Path) -> None:
    code = "def answer(text):\n    if number() == 1: raise ValueError('late')\n    return 'fine'"
    found = doctor(tmp_path, code, "doctor_crashing")
    (finding,) = found.findings
    assert finding.replays == (1,)
    assert "late" in finding.difference.replayed


def test_silence_cannot_be_judged(tmp_path: Path) -> None:
    assert doctor(tmp_path, "def answer(text): return ''", "doctor_silent").exit_code == 3


def test_who_is_not_there_cannot_be_judged(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no 'missing' in doctor_nobody"):
        doctor(tmp_path, "", "doctor_nobody", endpoint="doctor_nobody:missing")


def test_an_agent_that_somebody_else_starts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="doctor starts the agent again"):
        doctor(tmp_path, "", "doctor_foreign", type="http", endpoint="http://127.0.0.1:9/x")


def test_orders_that_change_with_the_hash_seed_only_are_told_from_races(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text("print(list({f'word {n}' for n in range(20)}))")
    block = {"type": "command", "start": ["python", str(program)]}
    config = Config.of({"version": "2.0", "agent": block, "golden_prompts": ["go"]}).at(str(tmp_path))
    found = diagnose(Project(config, tmp_path / "f.yaml"), Options(tapes=tmp_path / "tapes"))
    (finding,) = found.findings
    assert finding.difference.source == "hash seed"
    assert finding.replays == (3, 4, 5)
