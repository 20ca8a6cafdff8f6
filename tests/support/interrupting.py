"""Runs of a launched agent that are interrupted at random moments: what is left over, and what is lost.

    python tests/support/interrupting.py 200 [SEED] [--signal KILL]

does 200 of them, by each signal in turn or by one, and prints figures such as docs/explanation/security.md quotes; CI
does a few.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from e2e_support import FLAKESTORM, clean_env, write_config

__all__ = ["SIGNALS", "Tally", "Unmoved", "interrupted"]

SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)

_AGENT = """
import http.server, json, os, subprocess, sys, urllib.request

subprocess.Popen(["sleep", "600"])  # a child of its own, and one that left its session
subprocess.Popen(["sleep", "600"], start_new_session=True)

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"output": "x" * 2000}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
_MARK = "FLAKESTORM_INTERRUPTING"
_GONE_S = 60.0


@dataclass
class Unmoved:
    """A command that was told to stop and ended as if it had not been: with a verdict.

    Args:
        how: the signal. code: what it ended with.
        saved: its runs in the store when the signal was sent; in_the_end: when it had ended.
        told: whether its verdict had been printed when the signal was sent.
        went_on_s: how long it took to end.
    """

    how: str
    code: int
    saved: int
    in_the_end: int
    told: bool
    went_on_s: float


@dataclass
class Tally:
    """What came of it.

    Args:
        runs: commands that were interrupted; by_signal: of them, how many by which.
        finished: commands that had ended before the signal came.
        orphans: processes that were still there a minute after their command had ended.
        saved: runs that a reader had seen in the store before a command was ended; lost: of them, those that are gone.
        broken: stores that were damaged, and tapes whose content was not that of their digest.
        unmoved: commands that went on to a verdict after the signal.
    """

    runs: int = 0
    finished: int = 0
    orphans: int = 0
    saved: int = 0
    lost: int = 0
    broken: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    by_signal: Counter[str] = field(default_factory=Counter)
    unmoved: list[Unmoved] = field(default_factory=list)


def interrupted(
    folder: Path,
    count: int,
    *,
    seed: int = 1,
    longest_s: float = 3.0,
    signals: Sequence[signal.Signals] = SIGNALS,
) -> Tally:
    """Start `contract run` so often in one folder, and end each at a random moment by each of the signals in turn."""
    (folder / "agent.py").write_text(_AGENT)
    write_config(
        folder,
        agent={
            "type": "http",
            "start": [sys.executable, "-S", "agent.py", "{port}"],
            "endpoint": "http://127.0.0.1:{port}/",
            "ready": "{port}",
            "request_template": '{"input": "{prompt}"}',
            "response_path": "output",
        },
        golden_prompts=[f"prompt {n}" for n in range(400)],
        contract={
            "name": "c",
            "invariants": [{"id": "answers", "type": "output_not_empty"}],
            "chaos_matrix": [{"name": "plain"}],
            "trials": 10,
        },
        advanced={"concurrency": 3, "seed": 5},
    )
    tally, rng = Tally(), random.Random(seed)
    with _heeded(signal.SIGINT):
        for number in range(count):
            _one(folder, signals[number % len(signals)], rng.uniform(0.1, longest_s), tally)
    return tally


@contextmanager
def _heeded(how: signal.Signals) -> Iterator[None]:
    """A shell has its background jobs ignore Ctrl-C, and so would all that they start, until it says otherwise: a
    command that is interrupted while it is still being imported then goes on to its verdict."""
    before = signal.getsignal(how)
    if before is signal.SIG_IGN:
        signal.signal(how, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(how, before)


def _one(folder: Path, how: signal.Signals, after_s: float, tally: Tally) -> None:
    mark = uuid.uuid4().hex
    said = folder / "said"
    with said.open("wb") as out:
        command = subprocess.Popen(
            [str(FLAKESTORM), "contract", "run"], cwd=folder, env=clean_env({_MARK: mark}),
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    seen: set[tuple[str, str]] = set()
    before = max((report for report, _ in _kept(folder)[0]), default="")
    over = threading.Event()
    reader = threading.Thread(target=_watch, args=(folder, before, seen, over))
    reader.start()
    try:
        command.wait(after_s)
        tally.finished += 1
    except subprocess.TimeoutExpired:
        over.set()
        reader.join()  # what it has seen was saved before the signal
        told = b"saved: " in said.read_bytes()
        command.send_signal(how)
        sent = time.monotonic()
        command.wait(120)
        went_on_s = time.monotonic() - sent
        tally.runs += 1
        tally.by_signal[how.name] += 1
        if command.returncode in (0, 1, 3):
            own = [report for report, _ in _kept(folder)[0] if report > before]
            tally.unmoved.append(Unmoved(how.name, command.returncode, len(seen), len(own), told, round(went_on_s, 2)))
    finally:
        over.set()
        reader.join()
    tally.codes[f"{how.name} {command.returncode}"] += 1
    tally.orphans += _left(mark)
    kept, sound = _kept(folder)
    tally.saved += len(seen)
    tally.lost += len(seen - kept)
    tally.broken += not sound


def _watch(folder: Path, before: str, seen: set[tuple[str, str]], over: threading.Event) -> None:
    """Read what is saved, as another process would, until told to stop."""
    while not over.wait(0.05):
        try:
            with sqlite3.connect(f"file:{folder}/.flakestorm/store.sqlite3?mode=ro", uri=True, timeout=10) as db:
                seen.update(db.execute("SELECT report, id FROM runs WHERE report > ?", (before,)))
            db.close()
        except sqlite3.OperationalError:  # not made yet
            continue


def _kept(folder: Path) -> tuple[set[tuple[str, str]], bool]:
    """The runs in the store, and whether it and every tape in it are sound."""
    file = folder / ".flakestorm" / "store.sqlite3"
    if not file.exists():
        return set(), True
    db = sqlite3.connect(file)
    try:
        sound = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT report, id, tape FROM runs").fetchall()
    except sqlite3.OperationalError:  # killed before its tables were made
        return set(), True
    finally:
        db.close()
    for _, _, tape in rows:
        if tape:
            content = file.parent / "content" / tape[:2] / tape
            sound = sound and hashlib.sha256(content.read_bytes()).hexdigest() == tape
    return {(report, run) for report, run, _ in rows}, sound


def _left(mark: str) -> int:
    """How many processes are left of a command; they are given a while to go, and are then ended."""
    deadline = time.monotonic() + _GONE_S
    wait = threading.Event()
    while (found := _marked(mark)) and time.monotonic() < deadline:
        wait.wait(0.05)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)


def _marked(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if f"{_MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("count", type=int)
    asked.add_argument("seed", type=int, nargs="?", default=1)
    names = [each.name.removeprefix("SIG") for each in SIGNALS]
    asked.add_argument("--signal", choices=names, help="this one alone; default: each in turn")
    given = asked.parse_args()
    signals = [signal.Signals[f"SIG{given.signal}"]] if given.signal else SIGNALS
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        done = interrupted(Path(place), given.count, seed=given.seed, signals=signals)
        took_s = round(time.monotonic() - began)
        unmoved = [asdict(each) for each in done.unmoved]
        print(json.dumps({**done.__dict__, "unmoved": unmoved, "took_s": took_s}), flush=True)  # removing it takes long


if __name__ == "__main__":
    _main()
