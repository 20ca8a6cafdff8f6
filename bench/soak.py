"""The gateway under siege: 100,000 requests, 200 at a time, streams and whole replies. Some clients leave half-way,
some read slowly, some upstreams reset the connection. Memory stays flat, nothing is left open, and every exchange is on
the tape with the end it had.

Three kinds of gateway take their turn: one that records nothing, one of a run (which keeps its exchanges, to be judged
when it ends; 10,000 of them), and `flakestorm gateway`, which keeps none.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.outcome import Claim, Outcome
from bench.peers import ROOT
from bench.processes import environment, serving

MIX = ("stream",) * 12 + ("whole",) * 3 + ("slow",) * 2 + ("drip",) * 2 + ("reset",)
FLOOD = 250
"""How requests are divided: in every 20, 12 streams, 3 whole replies, 2 read slowly, 2 left early, 1 reset; and one in
so many is 8 MiB, read slowly."""

ENDS = {"stream": "eof", "whole": "eof", "slow": "eof", "flood": "eof", "drip": "client left", "reset": "broken"}
BYTES = {"slow": 64 * 1024, "flood": 8 * 1024 * 1024}
KINDS = {"passing": "recording nothing", "run": "of one run", "standing": "flakestorm gateway"}
FLAT_KIB = 0.25
"""How much memory may grow for each further request: what is under way when a round ends is never quite the same."""
SLOW_BYTES, SLOW_S = 64 * 1024, 0.01


@dataclass(frozen=True, slots=True)
class Size:
    """How much of it: requests in each of so many rounds, and how many at a time."""

    requests: int
    rounds: int
    together: int

    @property
    def total(self) -> int:
        return self.requests * self.rounds


FULL = {"passing": Size(20_000, 5, 200), "run": Size(2_000, 5, 200), "standing": Size(20_000, 5, 200)}
QUICK = dict.fromkeys(FULL, Size(100, 3, 30))


@dataclass(slots=True)
class Found:
    """What one gateway went through.

    Args:
        rss_kib: resident memory before anything, and after each round.
        left: tasks and open files that it has more than before.
        wrong: replies that were not what their kind says.
        ends: how the exchanges on the tape ended, by kind; empty where nothing is recorded.
        seconds: for all rounds.
    """

    rss_kib: list[int]
    left: dict[str, int]
    wrong: list[str]
    ends: Counter[tuple[str, str]]
    seconds: float


def measure(*, quick: bool) -> list[Outcome]:
    sizes = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder, serving("bench.soak_upstream") as upstream:
        url = f"http://127.0.0.1:{upstream['port']}/v1"
        found = {kind: _besiege(kind, url, Path(folder, f"{kind}.tape"), sizes[kind]) for kind in KINDS}
    return [_outcome(found, sizes, quick=quick)]


def _besiege(kind: str, upstream: str, tape: Path, size: Size) -> Found:
    wrong: list[str] = []
    numbers = itertools.count()
    with _gateway(kind, upstream, tape) as (said, ask):
        before = ask()
        rss_kib, seconds = [before["rss_kib"]], 0.0
        for _ in range(size.rounds):
            began = time.perf_counter()
            wrong += asyncio.run(_round(said["port"], said["path"], size, numbers))
            seconds += time.perf_counter() - began
            rss_kib.append(ask()["rss_kib"])
        after = _settled(ask, before)
    left = {what: after[what] - before[what] for what in ("tasks", "files")}
    return Found(rss_kib, left, wrong, Counter() if kind == "passing" else _ends(tape), seconds)


def _settled(ask: Any, before: dict[str, int]) -> dict[str, int]:
    """How the gateway feels once everything under way has ended and idle connections were let go of, if they are."""
    for _ in range(100):
        now: dict[str, int] = ask()
        if all(now[what] <= before[what] for what in ("tasks", "files")):
            break
        time.sleep(0.1)
    return now


async def _round(port: int, path: str, size: Size, numbers: Iterator[int]) -> list[str]:
    """So many requests, so many at a time; what was wrong with their replies."""
    work = iter([next(numbers) for _ in range(size.requests)])

    async def client() -> list[str]:
        return [trouble for number in work if (trouble := await _request(port, path, number))]

    return [each for troubles in await asyncio.gather(*(client() for _ in range(size.together))) for each in troubles]


async def _request(port: int, path: str, number: int) -> str:
    """One request on a connection of its own; what was wrong with the reply, or nothing."""
    kind = _kind(number)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=SLOW_BYTES)
    asked = {"model": "gpt-4o", "stream": kind != "whole", "messages": [{"role": "user", "content": f"n{number}"}]}
    body = json.dumps(asked).encode()
    writer.write(
        f"POST {path}/chat/completions?soak={kind} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    data = bytearray()
    try:
        data += await reader.readuntil(b"\r\n\r\n")
        if kind == "drip":
            data += await reader.readuntil(b"\n\n")
        else:
            while piece := await reader.read(SLOW_BYTES):
                data += piece
                if kind in BYTES:
                    await asyncio.sleep(SLOW_S)
    except ConnectionError:
        if kind != "reset":
            return f"{kind}: the connection broke after {len(data)} bytes"
    except asyncio.IncompleteReadError as error:
        return f"{kind}: the reply ended after {len(data) + len(error.partial)} bytes"
    finally:
        writer.close()
    return _trouble(kind, bytes(data))


def _kind(number: int) -> str:
    return "flood" if number % FLOOD == FLOOD - 1 else MIX[number % len(MIX)]


def _trouble(kind: str, data: bytes) -> str:
    whole = data.endswith(b"0\r\n\r\n") or kind == "whole"
    if not data.startswith(b"HTTP/1.1 200"):
        return f"{kind}: {data[:200]!r}"
    if len(data) < BYTES.get(kind, 0):
        return f"{kind}: only {len(data)} bytes came"
    return "" if whole == (ENDS[kind] == "eof") else f"{kind}: {'a whole' if whole else 'half a'} reply came"


def _ends(tape: Path) -> Counter[tuple[str, str]]:
    """The exchanges on the tape by kind and end; each request once, or its number counts as one more."""
    from flakestorm.tape.reader import Tape

    found: Counter[tuple[str, str]] = Counter()
    numbers: set[str] = set()
    for exchange in Tape.open(tape):
        number = json.loads(exchange.body)["messages"][0]["content"]
        found[exchange.url.partition("soak=")[2], "twice" if number in numbers else exchange.reply.end] += 1
        numbers.add(number)
    return found


def _outcome(found: dict[str, Found], sizes: dict[str, Size], *, quick: bool) -> Outcome:
    rows = [_row(kind, each, sizes[kind]) for kind, each in found.items()]
    wrong = [trouble for each in found.values() for trouble in each.wrong]
    left = {kind: each.left for kind, each in found.items() if any(n > 0 for n in each.left.values())}
    taped = all(found[kind].ends == _expected(sizes[kind].total) for kind in ("run", "standing"))
    counts = " and ".join(f"{sizes[kind].total:,}" for kind in ("run", "standing"))
    claims = [
        Claim(f"every reply was what its upstream and its client made of it{_some(wrong)}", not wrong),
        Claim(f"every exchange is on the tape once, with the end it had ({counts} of them)", taped),
        Claim(f"no task and no socket is left{_some([str(left)] if left else [])}", not left),
    ]
    if not quick:
        grown = {kind: found[kind].rss_kib[-1] - found[kind].rss_kib[2] for kind in ("passing", "standing")}
        words = ", ".join(f"{KINDS[kind]} {kib / 1024:+.1f} MiB" for kind, kib in grown.items())
        further = {kind: sizes[kind].total - 2 * sizes[kind].requests for kind in grown}
        flat = all(kib <= FLAT_KIB * further[kind] for kind, kib in grown.items())
        text = f"memory is flat from the second round on, within {FLAT_KIB:g} KiB for each request: {words}"
        claims.append(Claim(text, flat))
    columns = ("", "requests", "at a time", "MiB before", "after each round", "requests/s")
    note = (
        "In every 20 requests: 12 streams, 3 whole replies, 2 read slowly, 2 that the client leaves, 1 that the "
        f"upstream resets, and one in {FLOOD} of 8 MiB read slowly; each on a connection of its own. A run keeps its "
        "exchanges until it has been judged."
    )
    return Outcome("Gateway under siege", columns, rows, claims, note)


def _expected(total: int) -> Counter[tuple[str, str]]:
    return Counter((kind, ENDS[kind]) for kind in map(_kind, range(total)))


def _row(kind: str, found: Found, size: Size) -> tuple[str, ...]:
    before, *after = (f"{kib / 1024:.0f}" for kib in found.rss_kib)
    per_s = f"{size.total / found.seconds:,.0f}"
    return KINDS[kind], f"{size.total:,}", str(size.together), before, ", ".join(after), per_s


def _some(troubles: list[str]) -> str:
    return f" ({len(troubles)} not: {'; '.join(troubles[:3])})" if troubles else ""


@contextmanager
def _gateway(kind: str, upstream: str, tape: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """A gateway in a process of its own: what it said of itself, and how to ask how it feels."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.soak_gateway", kind, upstream, str(tape)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told, says = process.stdin, process.stdout

    def ask() -> dict[str, int]:
        told.write("how?\n")
        told.flush()
        answer: dict[str, int] = json.loads(says.readline())
        return answer

    try:
        yield json.loads(says.readline()), ask
        told.close()
        process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
        says.close()
