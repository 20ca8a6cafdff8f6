"""`flakestorm gateway` in a subprocess, and agents that the test itself starts behind it."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_support import FLAKESTORM, PROGRAMS, clean_env

__all__ = ["Stands", "agent_at", "free_port", "running", "standing"]

PATIENCE_S = 60.0


@dataclass
class Stands:
    """A gateway that stands.

    Args:
        process: its process.
        variables: what it printed.
        err: what it said on stderr, once it has ended.
    """

    process: "subprocess.Popen[str]"
    variables: dict[str, str]
    tape: Path
    err: str = ""

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            _, self.err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def standing(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> Iterator[Stands]:
    """A gateway in this folder, stopped at the end if it still runs."""
    tape = folder / "standing.tape"
    process = subprocess.Popen(
        [str(FLAKESTORM), "gateway", "-o", str(tape), *args],
        cwd=folder,
        env=clean_env(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()  # ends when all is printed, while the gateway goes on
    stands = Stands(process, dict(line.split("=", 1) for line in lines), tape)
    try:
        yield stands
    finally:
        stands.stop()
    assert "Traceback" not in stands.err, stands.err


@contextmanager
def running(env: Mapping[str, str]) -> Iterator[str]:
    """The SDK agent with this environment, started by nobody but the test; its root URL."""
    port = free_port()
    command = [sys.executable, str(PROGRAMS / "sdk_agent.py"), "--port", str(port)]
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=clean_env({**keys, **env}), stderr=subprocess.PIPE)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                probe.settimeout(PATIENCE_S)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            try:
                process.wait(0.05)
                raise AssertionError(process.stderr and process.stderr.read())
            except subprocess.TimeoutExpired:
                continue
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def agent_at(url: str) -> dict[str, Any]:
    """The `agent` block for the SDK agent that runs there."""
    return {
        "type": "http",
        "endpoint": f"{url}/invoke",
        "request_template": '{"input": "{prompt}"}',
        "response_path": "output",
    }
