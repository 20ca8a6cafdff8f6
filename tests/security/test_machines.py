"""What the store, a tape and the matcher promise, under any row of steps that hypothesis thinks of."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from faults_support import JSON, tool_call
from flakestorm.core.call import Reply
from flakestorm.store.sqlite import Store
from flakestorm.tape.match import Matcher
from flakestorm.tape.reader import Tape
from replay_support import chat, exchange, request
from tape_support import Run

FEW = settings(max_examples=12, stateful_step_count=12, deadline=None)


class StoreMachine(RuleBasedStateMachine):
    """Writers that begin, add, finish, prune and go away: whatever was said to be saved is there."""

    reports = Bundle("reports")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.saved: dict[str, list[str]] = {}
        self.open = Store(self.folder, write=True)

    def document(self, runs: list[str]) -> dict[str, Any]:
        made = []
        for run in runs:
            tape = self.folder / f"{run}.written"
            tape.write_text(f"tape of {run[:2]}")
            made.append({"id": run, "tape": str(tape)})
        return {
            "command": "run", "config": "c", "started_at": "2026-11-22T07:36:45.000Z", "verdict": "pass",
            "exit_code": 0, "scores": {}, "cells": [], "runs": made,
        }  # fmt: skip

    @rule(target=reports)
    def begin(self) -> str:
        id_ = self.open.begin(self.document([]))
        self.saved[id_] = []
        return id_

    @rule(report=reports, count=st.integers(1, 4))
    def add(self, report: str, count: int) -> None:
        known = self.saved.setdefault(report, [])
        new = [f"r-{len(known) + n}" for n in range(count)]
        self.open.add(report, [self.document([run]) for run in new])
        known += new

    @rule(report=consumes(reports))
    def finish(self, report: str) -> None:
        self.open.finish(report, self.document(self.saved.setdefault(report, [])))

    @rule(keep=st.integers(0, 2))
    def prune(self, keep: int) -> None:
        for gone in self.open.prune(keep=keep).reports:
            del self.saved[gone]

    @rule()
    def come_back(self) -> None:
        self.open.close()
        self.open = Store(self.folder, write=True)

    @invariant()
    def all_is_there(self) -> None:
        with Store(self.folder) as store:
            assert {entry.id: entry.runs for entry in store.entries()} == {id_: len(r) for id_, r in self.saved.items()}
            kept = store.tapes()
        assert sorted((each.report, each.run) for each in kept) == sorted(
            (id_, run) for id_, runs in self.saved.items() for run in runs
        )
        assert all(each.path.read_text().startswith("tape of") for each in kept)
        files = {path.name for path in (self.folder / "content").rglob("*") if path.is_file()}
        assert files == {each.digest for each in kept}

    def teardown(self) -> None:
        self.open.close()
        shutil.rmtree(self.folder)


class TapeMachine(RuleBasedStateMachine):
    """A recorder that is asked anything: a reader who comes at any moment finds every exchange that has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "a.tape"
        self.run = Run(self.path)
        self.said: list[tuple[bytes, bytes]] = []

    @rule(asked=st.binary(max_size=700), told=st.binary(max_size=700))
    def exchange(self, asked: bytes, told: bytes) -> None:
        self.ask(asked, told)

    @rule(more=st.binary(min_size=1, max_size=40), times=st.integers(1, 60))
    def grow(self, more: bytes, times: int) -> None:
        """What a chat does: the last request again, and more."""
        before = self.said[-1][0] if self.said else b""
        self.ask(before + more * times, b"fine")

    def ask(self, asked: bytes, told: bytes) -> None:
        from dataclasses import replace

        call = replace(tool_call(n=len(self.said) + 1), body=asked)
        assert self.run.ask(call, lambda _: Reply(200, JSON, told)) == told
        self.said.append((asked, told))

    @invariant()
    def a_reader_finds_all(self) -> None:
        found = Tape.open(self.path).exchanges()
        assert len(found) == len(self.said)
        for one, (asked, told) in zip(found, self.said, strict=True):
            if b"[secret:" not in one.body + one.reply.body:
                assert (one.body, one.reply.body) == (asked, told)

    def teardown(self) -> None:
        self.run.recorder.close(output="done")
        Tape.open(self.path).verify()
        shutil.rmtree(self.folder)


WORDS = st.sampled_from(
    ["hi", "book Oslo", "0b8e8f52-6c3e-4c8e-9d43-7a5d0e1a2b3c", "1b8e8f52-6c3e-4c8e-9d43-7a5d0e1a2b3c"]
)


class MatchMachine(RuleBasedStateMachine):
    """Requests in any order to a tape of any requests: nothing answers twice, and what is left is told."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded: list[str] = []
        self.matcher: Matcher | None = None
        self.served: list[int] = []

    @rule(word=WORDS)
    def record(self, word: str) -> None:
        if self.matcher is None:
            self.recorded.append(word)

    @rule(word=WORDS, lane=st.sampled_from(["1", "2", ""]))
    def ask(self, word: str, lane: str) -> None:
        if self.matcher is None:
            self.matcher = Matcher([exchange(n, chat(each)) for n, each in enumerate(self.recorded)])
        free = [n for n, each in enumerate(self.recorded) if each == word and n not in self.served]
        match = self.matcher.match(request(chat(word)), lane)
        if match.outcome in ("exact", "renamed", "reordered"):
            assert match.entry is not None
            self.served.append(match.entry.n)
        elif free and not any("-" in each for each in (word, *self.recorded)):
            raise AssertionError(f"{word!r} was recorded and free, and was {match.outcome}")

    @invariant()
    def nothing_answers_twice(self) -> None:
        assert len(self.served) == len(set(self.served))
        if self.matcher is not None:
            assert {entry.n for entry in self.matcher.missing()} <= set(range(len(self.recorded))) - set(self.served)


for machine in (StoreMachine, TapeMachine, MatchMachine):
    machine.TestCase.settings = FEW
TestStore, TestTape, TestMatcher = StoreMachine.TestCase, TapeMachine.TestCase, MatchMachine.TestCase
