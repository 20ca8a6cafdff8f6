"""Runs on a Ray cluster: workers that each have an agent of their own, wherever Ray puts them.

Ray places the workers, carries errands and outcomes, and says when a worker is lost; its run is then given to another
one, and a new worker takes its place. It is imported when a cluster is asked for. A cluster that is started here
listens on the loopback interface alone, has no dashboard and reports to nobody.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from flakestorm.agents.threads import in_thread
from flakestorm.core.answer import AgentError, Answer
from flakestorm.engine.events import Listener, Note
from flakestorm.engine.ports import Line
from flakestorm.errors import AgentUnreachable, MissingExtra, Misuse
from flakestorm.executors.away import Errand, Lost, Outcome
from flakestorm.executors.local import LocalExecutor, at_once
from flakestorm.executors.worker import Failure, Order, Worker

__all__ = ["ATTEMPTS", "Cluster", "RayWorker", "load_ray"]

R = TypeVar("R")
T = TypeVar("T")

ATTEMPTS = 3
"""How many workers may be lost with the same run before it is given up: the agent may be what ends them."""

CONNECT_LIMIT_S = 10.0
"""How long is waited for somebody to listen at the cluster's address."""

START_LIMIT_S = 120.0
"""How long is waited for a worker, its agent's start included."""

CLOSE_LIMIT_S = 20.0
"""How long is waited for workers to end their agents."""

_STORE_BYTES = 100 * 2**20
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}


def load_ray(address: str) -> Any:
    """Import Ray for a cluster at this address, as `Cluster` takes it; it reads its settings when it is imported.

    Raises:
        MissingExtra: it is not installed.
    """
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if _alone(_place(address)):  # this is how Ray is told that nobody else's machine takes part
        settings["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("--executor ray", "ray") from error
    return ray


def _place(address: str) -> str:
    """Where the cluster is; empty for one that is to be started on this machine."""
    found = address or os.environ.get("RAY_ADDRESS", "")
    return "" if found == "local" else found


def _alone(place: str) -> bool:
    """Whether the cluster is this machine's own, on its loopback interface."""
    return place.rpartition(":")[0].strip("[]") in ("127.0.0.1", "localhost", "::1") or not place


class RayWorker:
    """A worker as Ray runs it: `ray.cancel` says that what is under way is not wanted any more.

    It is no subclass of `Worker`: of a class with coroutines among its methods, Ray would call none in the main thread.
    """

    def __init__(self, order: Order) -> None:
        import ray  # on the worker

        self._worker = Worker(order, lambda: not ray.get_runtime_context().is_canceled())

    def start(self) -> Failure | None:
        """As `Worker.start`."""
        return self._worker.start()

    def carry(self, errand: Errand) -> Outcome:
        """As `Worker.carry`."""
        return self._worker.carry(errand)

    def close(self) -> None:
        """As `Worker.close`."""
        self._worker.close()


class Cluster:
    """Workers on a Ray cluster. Fulfils `executors.away.Carrier`, `engine.ports.Executor` and `engine.ports.Agent`.

    Args:
        order: what each worker is made from.
        workers: how many; None for as many as the cluster has processors.
        most: the most there may be, because no more runs are made at once.
        address: of the cluster, as Ray takes it (`HOST:PORT` or `auto`); empty takes RAY_ADDRESS, or starts a cluster
            on this machine.
        told: is told of workers that were lost.

    Raises:
        MissingExtra: Ray is not installed.
    """

    def __init__(self, order: Order, *, workers: int | None, most: int, address: str, told: Listener) -> None:
        self._ray = load_ray(address)
        self._order, self._wanted, self._most, self._told = order, workers, most, told
        self._address = _place(address)
        self._loop: asyncio.AbstractEventLoop
        self._connected: asyncio.Future[None] | None = None
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._stay, name="flakestorm-ray", daemon=True)
        self._size = 1
        self._actor: Any = None
        self._idle: list[Any] = []
        self._busy: dict[Any, Any] = {}
        self._coming: dict[asyncio.Task[None], Any] = {}
        self._failures: list[Failure] = []
        self._changed = asyncio.Condition()

    async def start(self) -> None:
        """Connect, and bring the workers up; returns when the first is ready.

        Raises:
            Misuse: there is no such cluster, or the agent cannot be started there as it is configured.
            AgentUnreachable: no worker could start the agent.
        """
        self._loop = asyncio.get_running_loop()
        self._connected = self._loop.create_future()
        self._thread.start()
        await asyncio.shield(self._connected)
        for _ in range(self._size):
            self._bring_up()
        async with self._changed:
            await self._changed.wait_for(lambda: self._idle or not self._coming)
        if not self._idle:
            worst = self._failures[0]
            raise (Misuse if worst.misuse else AgentUnreachable)(f"on a worker of the cluster: {worst.why}")

    async def ask(self, prompt: str, line: Line) -> Answer:
        """The agents are the workers'; here there is none."""
        return Answer(error=AgentError("unreachable", "the agent is on the cluster, and its workers ask it"))

    async def execute(
        self,
        items: Iterable[T],
        work: Callable[[T, Callable[[], Awaitable[None]]], Awaitable[R]],
        done: Callable[[int, R], None],
        concurrency: int,
        hold_s: Callable[[int], float] = at_once,
    ) -> None:
        """As the local executor, with no more under way than there are workers."""
        await LocalExecutor().execute(items, work, done, min(concurrency, self._size), hold_s)

    async def carry(self, errand: Errand) -> Outcome:
        """Have this run made by the next worker that is free, and by another one when that is lost.

        Raises:
            Lost: there are no workers left, or `ATTEMPTS` of them were lost with it.
        """
        errors = self._ray.exceptions
        for attempt in range(1, ATTEMPTS + 1):
            worker = await self._take()
            self._busy[worker] = underway = worker.carry.remote(errand)
            try:
                outcome: Outcome = await underway
            except (errors.RayTaskError, errors.TaskCancelledError):  # a defect there is one here
                await self._give(worker)
                raise
            except (
                errors.RayError
            ) as error:  # it died, its machine did, or it cannot be reached; it gets no second hearing
                self._drop(worker)
                again = "" if attempt == ATTEMPTS else "; it is made again by another"
                self._told(Note(f"the worker of run {errand.trial.run} was lost ({type(error).__name__}){again}"))
                self._bring_up()
            else:
                await self._give(worker)
                return outcome
        raise Lost(f"{ATTEMPTS} workers were lost while they made this run; does the agent end its own process?")

    async def close(self) -> None:
        """End the agents and their workers, and the cluster where it was started here."""
        if self._connected is None:
            return
        with suppress(Misuse):
            await self._connected
        for task in self._coming:
            task.cancel()
        for underway in self._busy.values():
            self._ray.cancel(underway)
        workers = [*self._idle, *self._busy, *self._coming.values()]
        if ending := [worker.close.remote() for worker in workers]:
            await in_thread(self._await_all, ending)
        for worker in workers:
            self._drop(worker)
        self._leave.set()
        await in_thread(self._thread.join)

    def _stay(self) -> None:
        """Connect, stay for as long as that is wanted, and leave. In one thread, because the processes of a cluster
        that is started here end with the thread that has started them."""
        ours, failed = not self._ray.is_initialized(), None
        try:
            if ours:
                self._connect()
            self._measure()
        except Exception as error:
            where = f"at {self._address}" if self._address else "on this machine"
            hint = " (one that asks for a token is reached with RAY_AUTH_MODE=token)" if self._address else ""
            failed = Misuse(f"no Ray cluster {where}: {type(error).__name__}: {error}{hint}")
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self._answer, failed)
        if failed is None:
            self._leave.wait()
        if ours:
            self._ray.shutdown()

    def _answer(self, failed: Misuse | None) -> None:
        if self._connected is None or self._connected.done():
            return
        if failed is None:
            self._connected.set_result(None)
        else:
            self._connected.set_exception(failed)

    def _connect(self) -> None:
        if self._address:
            host, _, port = self._address.rpartition(":")
            if port.isdecimal():  # Ray itself would try for minutes
                socket.create_connection((host.strip("[]"), int(port)), CONNECT_LIMIT_S).close()
            self._ray.init(address=self._address, **_QUIET)
            return
        self._ray.init(
            address="local",
            num_cpus=self._wanted or min(self._most, os.cpu_count() or 1),
            num_gpus=0,
            include_dashboard=False,
            object_store_memory=_STORE_BYTES,
            **_QUIET,
        )

    def _measure(self) -> None:
        """How many workers there will be, and what each may take of the cluster."""
        processors = float(self._ray.cluster_resources().get("CPU", 1.0))
        self._size = max(1, min(self._wanted or int(processors), self._most))
        share = 1 if self._size <= processors else processors / self._size * 0.99
        self._actor = self._ray.remote(RayWorker).options(
            num_cpus=share, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )

    def _bring_up(self) -> None:
        worker = self._actor.remote(self._order)
        task = asyncio.ensure_future(self._ready(worker))
        self._coming[task] = worker

    async def _ready(self, worker: Any) -> None:
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(START_LIMIT_S):
                failure = await worker.start.remote()
        except self._ray.exceptions.RayError as error:
            failure = Failure(f"{type(error).__name__}: {error}", misuse=False)
        except TimeoutError:
            failure = Failure(f"it was not ready within {START_LIMIT_S:g} s", misuse=False)
        async with self._changed:
            if task is not None:
                del self._coming[task]
            if failure is None:
                self._idle.append(worker)
            else:
                self._failures.append(failure)
                self._drop(worker)
                self._told(Note(f"a worker could not be made ready: {failure.why}"))
            self._changed.notify_all()

    async def _take(self) -> Any:
        async with self._changed:
            await self._changed.wait_for(lambda: self._idle or not (self._coming or self._busy))
            if not self._idle:
                why = f": {self._failures[-1].why}" if self._failures else ""
                raise Lost(f"the cluster has no worker left{why}")
            return self._idle.pop()

    async def _give(self, worker: Any) -> None:
        async with self._changed:
            self._busy.pop(worker, None)
            self._idle.append(worker)
            self._changed.notify_all()

    def _drop(self, worker: Any) -> None:
        self._busy.pop(worker, None)
        with suppress(Exception):  # it is gone already
            self._ray.kill(worker, no_restart=True)

    def _await_all(self, ending: list[Any]) -> None:
        self._ray.wait(ending, num_returns=len(ending), timeout=CLOSE_LIMIT_S)
