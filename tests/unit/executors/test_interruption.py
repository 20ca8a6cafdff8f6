"""Ctrl-C: once, twice at once, and again later, through a whole command."""

import asyncio
import signal
import sys
import threading

import pytest

import flakestorm
from flakestorm.api import Options
from flakestorm.engine.events import RunStarted
from flakestorm.executors import interruption

CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "{module}:answer"}}
golden_prompts: [hello, bye]
contract: {{name: c, invariants: [{{type: contains, value: found}}], chaos_matrix: [{{name: calm}}]}}
"""
INTERRUPTING = """
import os, signal, threading

gate = threading.Event()

def answer(text):
    if text == "bye":
        for _ in range({times}):
            os.kill(os.getpid(), signal.SIGINT)
        gate.wait(20)
    return "found"
"""


@pytest.fixture
def interrupting(tmp_path):
    """A project whose second prompt presses Ctrl-C that often."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    gates = []

    def make(times: int):
        module = f"interrupting_{times}"

        def listener(event: object) -> None:
            if isinstance(event, RunStarted):
                gates.append(sys.modules[module].gate)

        (tmp_path / f"{module}.py").write_text(INTERRUPTING.format(times=times))
        (tmp_path / "flakestorm.yaml").write_text(CONFIG.format(module=module))
        return flakestorm.load(tmp_path / "flakestorm.yaml"), Options(
            tapes=tmp_path / "tapes", concurrency=1, listener=listener
        )

    yield make
    gates[0].set()
    for thread in [thread for thread in threading.enumerate() if thread.name == "flakestorm-call"]:
        thread.join(20)
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGTERM, before[1])


def test_ctrl_c_twice_at_once_is_one_and_keeps_what_finished(interrupting) -> None:
    loaded, options = interrupting(5)
    report = loaded.contract(options)
    assert (report.exit_code, report.interrupted, [run.input for run in report.runs]) == (130, True, ["hello"])
    signal.raise_signal(signal.SIGINT)  # still the same one, while the report is being written


def test_a_later_ctrl_c_is_obeyed_at_once(interrupting, monkeypatch) -> None:
    monkeypatch.setattr(interruption, "SAME_INTERRUPTION_S", 0.0)
    loaded, options = interrupting(1)
    assert loaded.contract(options).interrupted
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


async def test_a_command_that_serves_ends_by_the_first_signal(monkeypatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)  # as nohup does
    ended = interruption.ending(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    loop = asyncio.get_running_loop()
    try:
        signal.raise_signal(signal.SIGTERM)
        assert await ended == signal.SIGTERM
        signal.raise_signal(signal.SIGINT)
        assert not loop.remove_signal_handler(signal.SIGHUP)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    assert ended.result() == signal.SIGTERM


async def test_what_is_ignored_stays_ignored() -> None:
    """As in what a script starts in the background: its Ctrl-C is not meant for it, and SIGTERM is."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    never, seen = asyncio.Event(), list[int]()

    async def command() -> None:
        with interruption.interruptible() as signals:
            try:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGTERM)
                await never.wait()
            finally:
                seen.extend(signals)

    try:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(command())
        assert (seen, signal.getsignal(signal.SIGINT)) == ([signal.SIGTERM], signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
