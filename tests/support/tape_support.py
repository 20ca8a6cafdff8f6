"""Recorded runs for tests of the tape: a clock that is told the time, and a pipeline with a recorder in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from flakestorm.core.call import Call, Reply
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import Interceptor, adrive, chain, drive
from flakestorm.core.stream import apump, pump
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.writer import Meeting, Recorder

ASKED = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "book Oslo"}]}).encode()
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"to":"OSL"}'}}
SAID = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "Searching.", "tool_calls": [TOOL_CALL]},
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}


class Clock:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


class Run:
    """A recorded run: what `send` says is the world, and faults may stand between."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        faults: Schedule | None = None,
        stages: tuple[Interceptor, ...] = (),
        header: Mapping[str, object] | None = None,
        met: Meeting | None = None,
    ) -> None:
        self.clock, self.ledger = Clock(), Ledger()
        first = {"run": "r-1", "input": "to Oslo", **(header or {})}
        self.recorder = Recorder(path, clock=self.clock, ledger=self.ledger, header=first, met=met)
        schedule = faults or Schedule()
        middle = (schedule.stage(Choices(1), self.ledger, noted=lambda: self.recorder.exchanges), *stages)
        self.stage = chain(self.recorder.outer, *middle, self.recorder.inner)

    def cross(self, call: Call, send: Callable[[Call], Reply]) -> Reply:
        return drive(self.stage(call), send, self.clock.wait)

    def chunks(self, call: Call, send: Callable[[Call], Reply]) -> Iterator[bytes]:
        return pump(self.cross(call, send), self.clock.wait)

    def ask(self, call: Call, send: Callable[[Call], Reply]) -> bytes:
        return b"".join(self.chunks(call, send))

    async def aask(self, call: Call, send: Callable[[Call], Reply]) -> bytes:
        async def asend(call: Call) -> Reply:
            return send(call)

        async def asleep(seconds: float) -> None:
            self.clock.wait(seconds)

        reply = await adrive(self.stage(call), asend, asleep)
        return b"".join([chunk async for chunk in apump(reply, asleep)])
