"""A Ray cluster that a test starts, and contracts whose runs are made on it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e_support import PROGRAMS, clean_env, write_config

AGENT = """\
import os
import signal


def search(to):
    return {"flights": 3, "to": to}


def answer(text):
    try:
        os.rename("deadly", "dead")  # only once: the worker is killed in the midst of this run
    except OSError:
        pass
    else:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        found = search(text[-4:])
    except Exception as error:
        return f"search is unavailable: {error}"
    return f"{found.get('flights')} flights to {text[-4:]}"


TOOLS = [search]
"""

CITIES = ("Oslo", "Rome", "Bonn", "Bern", "Nice")


@contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """A cluster of two processors; gives the variables by which commands find it."""
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "ab" * 32}
    head = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "ray_head.py")],
        env=clean_env(secret),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert head.stdin is not None
    assert head.stdout is not None
    try:
        address = head.stdout.readline().strip()
        assert address, "the cluster did not start"
        assert address.startswith("127.0.0.1:"), "it must not be open to others"
        yield {**secret, "RAY_ADDRESS": address}
    finally:
        head.stdin.close()
        head.wait(60)
        head.stdout.close()


def many_cells(folder: Path, *, trials: int = 10, deadly: bool = False) -> Path:
    """A contract of 5 prompts, 5 scenarios and 2 invariants over an agent in this process: 50 cells for each trial.

    With `deadly`, the worker that makes the run after the first calm ones is killed in the midst of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "booking.py").write_text(AGENT)
    tool = {"tool": "search"}
    return write_config(
        folder,
        agent={"type": "python", "endpoint": "booking:answer", "tools": "booking:TOOLS"},
        golden_prompts=[f"a flight to {city}" for city in CITIES],
        contract={
            "name": "booking",
            "trials": trials,
            "invariants": [
                {"id": "answers", "type": "contains", "value": "flights", "min_pass_rate": 0.5},
                {"id": "same", "type": "behavior_unchanged"},
            ],
            "chaos_matrix": [
                {"name": "broken", "tool_faults": [{**tool, "mode": "malformed"}]},
                {"name": "down", "tool_faults": [{**tool, "mode": "error", "error_code": 503}]},
                {"name": "half", "tool_faults": [{**tool, "mode": "error", "probability": 0.5}]},
                {"name": "wrong", "tool_faults": [{**tool, "mode": "wrong_value", "probability": 0.3}]},
                {"name": "empty", "tool_faults": [{**tool, "mode": "empty"}]},
            ],
        },
        advanced={"seed": 42, "concurrency": 4},
    )


def bare(report: dict[str, Any]) -> str:
    """A report as JSON, without times, durations and places."""
    return json.dumps(_bare(report), sort_keys=True)


_LOCAL = ("started_at", "duration_ms", "latency_ms", "tape")


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if key not in _LOCAL}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def of_session(leader: int) -> list[int]:
    """The processes of this session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def carrying(text: str) -> list[int]:
    """The processes whose command line has this text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if text.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def parent_of(pid: int) -> int:
    """The process that started this one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(pid: int) -> None:
    """End a process that the test's own command started, as a machine that fails would."""
    os.kill(pid, signal.SIGKILL)
