"""Judged runs made by hand, and a world in which nothing is real, for the engine's tests."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from flakestorm.config.model import Invariant, Scenario, ToolFault
from flakestorm.contracts.base import RunView
from flakestorm.core.answer import Answer
from flakestorm.core.call import Call, Reply
from flakestorm.core.clock import Clock
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.pipeline import Interceptor, drive
from flakestorm.core.site import Site
from flakestorm.engine.events import RunResult
from flakestorm.engine.judged import Judged, judged
from flakestorm.engine.plan import Trial
from flakestorm.engine.runner import Runner, no_room
from flakestorm.errors import CallFailed

SEARCH = Site("tool", "search", 1)


def scenario(name: str, *tools: str, probability: float | None = None) -> Scenario:
    faults = [ToolFault(tool=tool, mode="error", probability=probability) for tool in tools]
    return Scenario(name=name, tool_faults=faults)


def run_of(trial: Trial, output: str = "fine", *, fired: bool = True, seen: Sequence[str] = ("search",)) -> Judged:
    """A finished run of this trial, judged for real."""
    chaos = trial.scenario.chaos
    ledger = Ledger(planned=len(trial.scenario.tool_faults), tools_planned=len(trial.scenario.tool_faults))
    for index, fault in enumerate(trial.scenario.tool_faults):
        if fault.tool in seen:
            ledger.matched[index] += 1
            if fired:
                ledger.fired.append(Firing(Site("tool", fault.tool, 1), fault.mode, "tool", fault=index))
    view = RunView(trial.text, output, scenario=trial.scenario.name, chaos=chaos, ledger=ledger)
    result = RunResult(
        id=trial.run,
        scenario=trial.scenario.name,
        prompt=trial.prompt,
        trial=trial.number,
        input=trial.text,
        output=output,
        error=None,
        latency_ms=1.0,
        planned=ledger.planned,
        fired=tuple(ledger.fired),
        masked=(),
        calls={},
        tape="",
        reproduce="",
        seen=tuple(seen),
    )
    return judged(trial, result, view, FakeWorld(Path()))


def says(text: str, *, name: str = "says", **more: object) -> Invariant:
    return Invariant(type="contains", id=name, value=text, **more)


class FakeLine:
    def __init__(self, run: str, pipeline: Interceptor, clock: Clock) -> None:
        self.run, self.pipeline, self.calls, self.clock = run, pipeline, 0, clock
        self.remarks: list[str] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        yield


class FakeBoundary:
    tools: Sequence[str] = ()
    borrowed = ""
    draws = None

    def tool(self, name: str, function: Callable[..., object], *, pairs: bool = False) -> None:
        raise AssertionError("no functions are held here")

    def line(self, run: str, pipeline: Interceptor, clock: Clock) -> FakeLine:
        return FakeLine(run, pipeline, clock)

    async def channel(self, env: object) -> None:
        raise AssertionError("nothing is launched here")

    async def standing(self) -> None:
        return None

    async def close(self) -> None:
        pass


class FakeAgent:
    """Calls the tool `search` once per run and says what came of it; the world's counter shows what got through."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reached = 0
        self.problem: Exception | None = None

    async def start(self) -> None:
        if self.problem:
            raise self.problem

    async def ask(self, prompt: str, line: FakeLine) -> Answer:
        self.asked.append(prompt)

        def world(call: Call) -> Reply:
            self.reached += 1
            return Reply(200, body=b'{"hits": 3}')

        try:
            reply = drive(line.pipeline(Call("GET", "http://tools/search")), world, lambda _: None)
        except CallFailed:
            return Answer("search does not answer", latency_ms=1.0)
        return Answer("found 3" if reply.status == 200 else "search is unavailable", latency_ms=1.0)

    async def close(self) -> None:
        pass


class OneByOne:
    """An executor; `stop_after` runs it raises `Stopped`, as an interruption would."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after = stop_after

    async def execute(
        self,
        items: Iterable[Trial],
        work: Callable[[Trial, Callable[[], Awaitable[None]]], Awaitable[Judged]],
        done: Callable[[int, Judged], None],
        concurrency: int,
        hold_s: Callable[[int], float],
    ) -> None:
        for index, item in enumerate(items):
            if index == self.stop_after:
                raise Stopped
            done(index, await work(item, no_room))


class Stopped(BaseException):
    pass


class FakeWorld:
    skips = True

    def __init__(self, folder: Path) -> None:
        self.folder, self.ticks = folder, 0.0

    def monotonic(self) -> float:
        self.ticks += 0.001
        return self.ticks

    def now(self) -> str:
        return "2026-01-02T03:04:05.000Z"

    def limited(self, seconds: float) -> AbstractContextManager[None]:
        return nullcontext()

    def tape_path(self, run: str) -> Path:
        return self.folder / f"{run}.tape"


def runner(tmp_path: Path, agent: FakeAgent) -> Runner:
    """A runner of this agent alone, its runs one by one."""
    return Runner(
        agent=agent,
        boundary=FakeBoundary(),
        executor=OneByOne(),
        world=FakeWorld(tmp_path),
        seed=1,
        tools=[("search", "*/search*")],
        listener=lambda event: None,
        concurrency=1,
        reproduce=lambda trial, schedule, ledger: "",
    )
