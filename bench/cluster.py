"""What many workers give: the driver's work for a run, measured, and 1 to 1,000 workers, simulated with it.

One process leads a campaign, whatever the number of workers, so its work for one run bounds what they can do together.
That work is measured with a Ray cluster of two workers on this machine, as the slope between a small campaign and a
large one, so that what happens once (Ray's start, the report) is no part of it. In a quick run no cluster is started,
and what is measured is packing and unpacking alone.

The simulation is one of discrete events: a driver that does one thing at a time, in order of arrival, half of its work
before a run and half after it; workers that make one run at a time; and workers that are lost in the midst of a run,
which is then made again by another, while the lost one is replaced.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.outcome import Claim, Outcome
from bench.peers import ROOT
from flakestorm import api
from flakestorm.api.away import Sent, serve
from flakestorm.executors.away import Errand, outcome_of

WORKERS = (1, 10, 100, 1000)
SECONDS = (1.0, 10.0, 60.0)
EACH = 50
"""Runs for each worker: enough that the last ones, for which not all workers are needed, weigh little."""

LOSSES = 0.001
"""Share of runs in which the worker is lost."""

REPLACED_S = 15.0
"""How long it takes to have another worker, its agent started."""

ENV = {**os.environ, "RAY_AUTH_MODE": "token"}

AGENT = """
def search(to):
    return {"flights": 3, "to": to}

def answer(text):
    return f"{search(text).get('flights')} flights"

TOOLS = [search]
"""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A campaign that was simulated.

    Args:
        runs: how many were made; wall_s: how long that took.
        busy_s: how long the driver worked.
        again: runs that were made again because a worker was lost.
    """

    runs: int
    wall_s: float
    busy_s: float
    again: int


def measure(*, quick: bool) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        _project(Path(folder))
        packed_s, sent, back = asyncio.run(_packing(Path(folder)))
        driver_s = packed_s if quick else _driver_s(Path(folder))
    rows = [(f"{sent:,} bytes", f"{back:,} bytes", f"{packed_s * 1000:.2f} ms", f"{driver_s * 1000:.2f} ms")]
    head = ("sent for a run", "sent back, with its tape", "packing and unpacking", "the driver's CPU for a run")
    each = 5 if quick else EACH
    table, claims = [], []
    for workers in WORKERS:
        cells = [f"{workers:,} worker{'s' if workers > 1 else ''}"]
        for run_s in SECONDS:
            free, calm, lossy = (
                simulate(workers, run_s, each_s, each * workers, losses=losses)
                for each_s, losses in ((0.0, 0.0), (driver_s, 0.0), (driver_s, LOSSES))
            )
            share = free.wall_s / calm.wall_s
            cells.append(
                f"{calm.runs / calm.wall_s:,.1f} runs/s ({share:.0%}; driver {calm.busy_s / calm.wall_s:.0%}; "
                f"with losses {free.wall_s / lossy.wall_s:.0%})"
            )
            if workers == WORKERS[-1] and run_s == 10.0 and not quick:
                said = f"1,000 workers with runs of 10 s do {share:.0%} of what they would if the driver took no time"
                claims.append(Claim(said, share >= 0.8))
        table.append(cells)
    columns = ("", *(f"runs of {run_s:g} s" for run_s in SECONDS))
    return [
        Outcome("Cluster: what the driver does for a run", head, rows),
        Outcome(
            "Cluster, simulated: how many runs a second",
            columns,
            table,
            claims,
            f"In brackets the share of what so many workers would do if the driver took no time, how busy that is, and "
            f"the share where a worker is lost in {LOSSES:.1%} of the runs. {each} runs for each worker; a run takes "
            "half its mean time for certain and the rest by an exponential draw.",
        ),
    ]


def simulate(
    workers: int, run_s: float, driver_s: float, runs: int, *, losses: float = 0.0, seed: int = 1
) -> Simulated:
    """Simulate a campaign.

    Args:
        workers: how many there are.
        run_s: the mean duration of a run, in seconds.
        driver_s: the driver's work for one run, in seconds.
        runs: how many are to be made.
        losses: share of runs in which the worker is lost.
        seed: of the draws.
    """
    lasting, fate = random.Random(seed), random.Random(seed + 1)
    waiting, idle, made, again = runs, workers, 0, 0
    now = busy = 0.0
    desk: deque[str] = deque()  # what the driver has still to do, in order of arrival
    working = False
    events: list[tuple[float, int, str]] = []
    order = 0

    def later(after_s: float, what: str) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (now + after_s, order, what))

    while made < runs:
        while idle and waiting:
            idle, waiting = idle - 1, waiting - 1
            desk.append("send")
        if desk and not working:
            working = True
            busy += driver_s / 2
            later(driver_s / 2, desk.popleft())
        now, _, what = heapq.heappop(events)
        if what == "send":
            working = False
            takes_s = run_s * (0.5 + 0.5 * lasting.expovariate(1.0))
            if fate.random() < losses:
                later(takes_s * fate.random(), "lost")
            else:
                later(takes_s, "ended")
        elif what == "ended":
            desk.append("taken")
        elif what == "taken":
            working = False
            made, idle = made + 1, idle + 1
        elif what == "lost":
            waiting, again = waiting + 1, again + 1
            later(REPLACED_S, "replaced")
        elif what == "replaced":
            idle += 1
    return Simulated(made, now, busy, again)


def _project(folder: Path) -> None:
    (folder / "agent_elsewhere.py").write_text(AGENT)
    config = {
        "version": "2.0",
        "agent": {"type": "python", "endpoint": "agent_elsewhere:answer", "tools": "agent_elsewhere:TOOLS"},
        "golden_prompts": [f"a flight to place {n}" for n in range(10)],
        "contract": {
            "name": "flights",
            "invariants": [
                {"id": "answers", "type": "contains", "value": "flights"},
                {"id": "calls", "type": "tool_called", "tool": "search"},
            ],
            "chaos_matrix": [
                {"name": "calm"},
                {"name": "down", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]},
            ],
        },
    }
    (folder / "flakestorm.yaml").write_text(yaml.safe_dump(config))


async def _packing(folder: Path) -> tuple[float, int, int]:
    """CPU seconds of packing and unpacking what is sent for a run and back, and the bytes of both."""
    project = api.load(folder / "flakestorm.yaml")
    plan = project.contract_plan(api.Options())
    async with serve(Sent(project.config, project.path, ()), plan.scenarios, plan.invariants, 1) as runner:
        await runner.agent.start()
        found = outcome_of(await runner.one(plan.trials[0]), crossed=True)
    errand = pickle.dumps(Errand(plan.trials[0]))
    outcome = pickle.dumps(found)
    spent = []
    for _ in range(200):
        began = time.process_time()
        pickle.dumps(Errand(plan.trials[0]))
        pickle.loads(outcome)
        spent.append(time.process_time() - began)
    return sorted(spent)[len(spent) // 2], len(errand), len(outcome)


def _driver_s(folder: Path) -> float:
    """The driver's CPU seconds for one more run."""
    head = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "e2e" / "programs" / "ray_head.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV,
    )  # fmt: skip
    assert head.stdin is not None
    assert head.stdout is not None
    try:
        address = head.stdout.readline().strip()
        slopes = []
        for _ in range(3):
            (few, few_s), (many, many_s) = (_campaign(folder, trials, address) for trials in (5, 100))
            slopes.append((many_s - few_s) / (many - few))
    finally:
        head.stdin.close()
        head.wait()
        head.stdout.close()
    return sorted(slopes)[1]


def _campaign(folder: Path, trials: int, address: str) -> tuple[int, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.cluster_driver", str(folder), str(trials), address],
        cwd=ROOT, capture_output=True, text=True, check=True, env=ENV,
    )  # fmt: skip
    runs, seconds = done.stdout.split()[-2:]
    return int(runs), float(seconds)
