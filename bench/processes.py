"""Processes that a benchmark starts: each tells its address on its first line, and is always ended again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.peers import ROOT

__all__ = ["ask", "free_port", "listening", "serving"]

_PATIENCE_S = 300.0


@contextmanager
def serving(*words: str | Path) -> Iterator[dict[str, Any]]:
    """Run a module of this folder as a server; gives what it said of itself in JSON on its first line."""
    with _running([sys.executable, "-m", *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{words[0]} ended before it served anything")
        yield json.loads(line)


@contextmanager
def listening(command: Sequence[str | Path], port: int) -> Iterator[None]:
    """Run a foreign server; entered once something listens on this loopback port."""
    with _running(command, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{command[0]} does not listen on port {port}") from None
                time.sleep(0.05)
        yield


def ask(python: Path, *words: str | Path) -> Any:
    """Run a module of this folder to its end, under any interpreter; gives the JSON it printed."""
    done = subprocess.run(
        [python, "-m", *words], env=_environment(), cwd=ROOT, capture_output=True, timeout=_PATIENCE_S, check=False
    )
    if done.returncode:
        raise SystemExit(f"{words[0]} failed:\n{done.stderr.decode()}")
    return json.loads(done.stdout)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(command: Sequence[str | Path], *, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=stdout, env=_environment(), cwd=ROOT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _environment() -> dict[str, str]:
    """This one, without proxies: everything measured here is on loopback. What is measured is this checkout's."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
