"""Runs an agent under a schedule that leaves much to chance, and prints what was planned and what fired, as JSON.

Used in process, and as a program of its own: `python determinism_support.py CONCURRENCY`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flakestorm.config.model import Invariant, LlmFault, Scenario, ToolFault
from flakestorm.core.answer import Answer
from flakestorm.core.call import Call, Reply
from flakestorm.core.clock import Clock
from flakestorm.core.pipeline import Interceptor, adrive
from flakestorm.core.stream import apump
from flakestorm.engine.judged import Judged
from flakestorm.engine.plan import make_plan
from flakestorm.engine.runner import Runner
from flakestorm.executors.local import LocalExecutor
from flakestorm.faults.schedule import Schedule

DRAWING = Path(__file__)
"""This program."""

SCENARIOS = [
    Scenario(
        name="flaky",
        tool_faults=[
            ToolFault(tool="*", mode="error", probability=0.3, message="no, not now"),
            ToolFault(tool="s*", mode="malicious_response", probability=0.5, times=2),
            ToolFault(tool="pay", mode="error", after_calls=1, calls=[2, 3]),
            ToolFault(mode="malformed", probability=0.2),
        ],
        llm_faults=[LlmFault(mode="rate_limit", probability=0.4), LlmFault(mode="garbage", probability=0.4)],
    ),
    Scenario(name="calm"),
    Scenario(name="Überfall", tool_faults=[ToolFault(tool="pay", mode="error", probability=0.5)]),
]
ANSWERS = Invariant(type="completes", id="answers")
TOOLS = ("search", "pay", "sell", "weather")
REPLY = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Three flights."}}]}).encode()


class Line:
    def __init__(self, run: str, pipeline: Interceptor) -> None:
        self.run, self.pipeline, self.calls = run, pipeline, 0
        self.remarks: list[str] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        yield


class Boundary:
    tools: tuple[str, ...] = ()
    draws = None

    def line(self, run: str, pipeline: Interceptor, clock: Clock) -> Line:
        return Line(run, pipeline)


class Agent:
    """Asks the model, then its tools all at once, three rounds of it; every await lets other runs go first."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def ask(self, prompt: str, line: Any) -> Answer:
        said = []
        for _ in range(3):
            url, body = "https://api.openai.com/v1/chat/completions", b'{"model": "gpt-4o", "messages": []}'
            calls = [Call("GET", f"https://tools.test/{name}") for name in TOOLS]
            asked = await self._use(line, Call("POST", url, body=body))
            said += [asked, *await asyncio.gather(*(self._use(line, call) for call in calls))]
        return Answer("".join(said))

    async def _use(self, line: Line, call: Call) -> str:
        async def world(asked: Call) -> Reply:
            await asyncio.sleep(0)
            return Reply(200, (("content-type", "application/json"),), REPLY)

        reply = await adrive(line.pipeline(call), world, asyncio.sleep)
        body = b"".join([chunk async for chunk in apump(reply, asyncio.sleep)])
        return f"{reply.status} {body.decode()}\n"


class World:
    skips = True

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> str:
        return "2026-01-02T03:04:05.000Z"

    def limited(self, seconds: float) -> AbstractContextManager[None]:
        return nullcontext()

    def tape_path(self, run: str) -> Path:
        return self._folder / f"{run}.tape"


def drawn(concurrency: int, *, seed: int = 42, trials: int = 3) -> str:
    """What was planned and what fired in every run, and what the agent was told, as one JSON text."""
    plan = make_plan("x", scenarios=SCENARIOS, invariants=[ANSWERS], prompts=["one", "two"], trials=trials)
    done: dict[str, Mapping[str, object]] = {}

    def finished(judged: Judged) -> None:
        run = judged.run
        done[run.id] = {
            name: [[str(f.site), f.mode, f.detail, f.fault] for f in firings]
            for name, firings in (("fired", run.fired), ("masked", run.masked))
        } | {"output": run.output, "canaries": list(map(str, run.canaries))}

    with TemporaryDirectory() as folder:
        runner = Runner(
            agent=Agent(),
            boundary=Boundary(),  # type: ignore[arg-type]  # holds nothing
            executor=LocalExecutor(),
            world=World(folder),
            seed=seed,
            tools=[(name, f"*/{name}") for name in TOOLS],
            listener=lambda event: None,
            concurrency=concurrency,
            reproduce=lambda trial, schedule, ledger: "",
        )
        asyncio.run(runner.carry_out(plan.trials, finished))
    schedules = {scenario.name: Schedule.of(scenario).line for scenario in SCENARIOS}
    return json.dumps({"schedules": schedules, "runs": dict(sorted(done.items()))}, indent=1)


if __name__ == "__main__":
    sys.stdout.write(drawn(int(sys.argv[1])))
