"""A project of somebody's, with an agent and tests that use the plug-in, run by pytest in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from e2e_support import clean_env

AGENT = """
import os
import httpx

def search(text):
    reply = httpx.get(os.environ["SEARCH_URL"], params={"to": text}, timeout=2)
    reply.raise_for_status()
    return reply.text

def answer(text):
    try:
        return "found " + search(text)
    except httpx.HTTPError:
        return "the search is unavailable, sorry"

async def later(text):
    async with httpx.AsyncClient() as client:
        reply = await client.get(os.environ["SEARCH_URL"], params={"to": text})
    return "unavailable" if reply.status_code >= 400 else reply.text
"""
CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "%s"}
boundary: {tools: {search: "*/search*"}}
golden_prompts: ["a flight to Oslo"]
contract:
  name: travel
  invariants: [{type: completes}]
  chaos_matrix:
    - {name: search-down, tool_faults: [{tool: search, mode: error, error_code: 503}]}
"""
_ASYNC = "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function"
BY_HAND = () if entry_points(group="pytest11", name="flakestorm") else ("-p", "flakestorm.pytest_plugin")


@dataclass(frozen=True)
class Tested:
    """What pytest said; `counts` are those of its last line."""

    code: int
    out: str
    counts: Mapping[str, int]


def project(folder: Path, tests: str, *, agent: str = "agent:answer") -> Path:
    """Write a project with this test module."""
    (folder / "agent.py").write_text(AGENT)
    (folder / "flakestorm.yaml").write_text(CONFIG % agent)
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n{_ASYNC}\n")
    (folder / "test_travel.py").write_text(tests)
    return folder


def run_tests(
    folder: Path,
    *words: str,
    env: Mapping[str, str] | None = None,
    python: Sequence[str | Path] = (),
    timeout: int = 120,
) -> Tested:
    """Run pytest there, with the plug-in, in an environment without anybody's keys."""
    command = [*map(str, python or (sys.executable, "-m", "pytest", *BY_HAND)), "-q", "-p", "no:cacheprovider", *words]
    variables = {name: value for name, value in clean_env(env).items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        command, cwd=folder, env={**variables, "COLUMNS": "250"}, capture_output=True, text=True, timeout=120,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    out = done.stdout + done.stderr
    last = re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout.strip().splitlines()[-1])
    counts = {name: int(n) for n, name in last}
    assert "INTERNALERROR" not in out, out
    return Tested(done.returncode, out, counts)


def ran_at(folder: Path) -> int:
    """How often the tests wrote a line into `count`."""
    file = folder / "count"
    return len(file.read_text().splitlines()) if file.exists() else 0
