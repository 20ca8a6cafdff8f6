"""What is launched ends with its command, and gets no more of ours than it needs."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e_support import FLAKESTORM, clean_env, flakestorm, wait_until, write_config
from interrupting import interrupted

RUNS = int(os.environ.get("FLAKESTORM_TEST_INTERRUPTIONS", "3"))
"""200 were made once, see docs/explanation/security.md; here it is one per signal."""


def test_interrupted_runs_leave_nobody_behind_and_lose_nothing_that_was_saved(tmp_path: Path) -> None:
    tally = interrupted(tmp_path, RUNS, seed=7, longest_s=3.0)
    assert tally.runs + tally.finished == RUNS
    assert (tally.orphans, tally.lost, tally.broken) == (0, 0, 0)
    assert tally.unmoved == [], "it would take far longer to get to a verdict"


def test_a_command_started_by_a_background_job_is_interrupted_too_where_its_starter_says_so(tmp_path: Path) -> None:
    """Who is told to ignore Ctrl-C passes that on, as a shell does to its background jobs; what interrupts commands
    here takes it back first, or those still being imported would go on to their verdict."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        tally = interrupted(tmp_path, 1, seed=7, longest_s=0.2, signals=[signal.SIGINT])
    finally:
        assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN
    assert (tally.runs, tally.unmoved) == (1, [])


STUBBORN = """
import http.server, json, pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path("told").touch())
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        body = json.dumps({"output": "fine"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_agents_are_being_stopped_costs_no_report(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "agent.py").write_text(STUBBORN)
    write_config(
        tmp_path,
        agent={
            "type": "http",
            "start": [sys.executable, "-S", "agent.py", "{port}"],
            "endpoint": "http://127.0.0.1:{port}/",
            "ready": "{port}",
        },
        contract={
            "name": "c",
            "invariants": [{"id": "answers", "type": "output_not_empty"}],
            "chaos_matrix": [{"name": "plain"}],
        },
    )
    with subprocess.Popen(
        [str(FLAKESTORM), "contract", "run", "--format", "json", "-o", "report.json"],
        cwd=tmp_path, env=clean_env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        wait_until((tmp_path / "told").exists)
        running.send_signal(how)
        _, err = running.communicate(timeout=60)
    assert "Traceback" not in err
    assert running.returncode == 0, err
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "pass"


def test_a_recorded_command_ends_with_a_recorder_that_was_killed(tmp_path: Path) -> None:
    code = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)"
    recording = subprocess.Popen(
        [str(FLAKESTORM), "record", "-o", "a.tape", "--", sys.executable, "-c", code],
        cwd=tmp_path, env=clean_env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    pid = int((tmp_path / "pid").read_text())
    recording.send_signal(signal.SIGKILL)
    recording.wait(60)
    wait_until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_launched_agent_is_told_nothing_of_ours_but_its_own_way_out(tmp_path: Path) -> None:
    """Agents inherit the caller's environment, as any program does; what flakestorm adds is theirs alone."""
    write_config(
        tmp_path,
        agent={
            "type": "command",
            "start": f"{sys.executable} -S -c 'import os,json;print(json.dumps(dict(os.environ)))'",
        },
        contract={
            "name": "c",
            "invariants": [{"id": "answers", "type": "output_not_empty"}],
            "chaos_matrix": [{"name": "one"}, {"name": "two"}],
        },
    )
    env = {
        "FLAKESTORM_SIGNING_KEY": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U=",
        "FLAKESTORM_RUN": "of-somebody-else-entirely",
    }
    done = flakestorm(tmp_path, "contract", "run", env=env, report=True)
    assert done.report is not None, done.err
    seen = [json.loads(run["output"]) for run in done.report["runs"]]
    tokens = [each["FLAKESTORM_RUN"] for each in seen]
    assert len({*tokens, env["FLAKESTORM_RUN"]}) == len(tokens) + 1
    for each in seen:
        assert "FLAKESTORM_SIGNING_KEY" not in each


MCP_AGENT = """
import asyncio, os, shlex, sys
from pathlib import Path
from mcp import Client
from mcp.client.stdio import StdioServerParameters

async def main():
    program, *args = shlex.split(os.environ[sys.argv[1]])
    async with Client(StdioServerParameters(command=program, args=args)) as client:
        await client.list_tools()
        token = os.environ["FLAKESTORM_RUN"]
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                ours = int(stat.read_bytes().rpartition(b")")[2].split()[1]) == os.getpid()
                words = stat.with_name("cmdline").read_bytes().decode()
            except OSError:  # it has ended
                continue
            if ours:
                print("wrapped" if "mcp_stdio.py" in words else "plain", token in words)

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc tells of other programs' arguments here")
@pytest.mark.parametrize("variable", ["FLAKESTORM_MCP_NOTES", "SERVER"])
def test_the_arguments_of_no_program_tell_the_way_to_the_gateway(tmp_path: Path, variable: str) -> None:
    """Others on this machine can read them. A server that a variable names is wrapped, and one that a client starts."""
    server = shlex.join([sys.executable, "-I", str(Path(__file__).parent.parent / "support" / "mcp_plain_server.py")])
    (tmp_path / "agent.py").write_text(MCP_AGENT)
    command = [sys.executable, "agent.py", variable]
    done = flakestorm(tmp_path, "record", "-o", "a.tape", "--", *command, env={variable: server})
    assert (done.code, done.out) == (0, "wrapped False\n"), done.err
    assert "mcp/" in flakestorm(tmp_path, "tapes", "show", "a.tape").out
