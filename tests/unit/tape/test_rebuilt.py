"""The digest of a replay is the same whether each exchange is noted or vouched for."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.api.replaying import load_tape
from flakestorm.core.call import Call, Headers, Reply
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain, drive
from flakestorm.core.site import Sites
from flakestorm.core.stream import Pieces, pump, read
from flakestorm.errors import CallFailed
from flakestorm.tape.player import Player
from flakestorm.tape.rebuilt import Rebuilt
from flakestorm.tape.writer import Recorder
from flakestorm.wire.classify import classify

URL = "https://api.openai.com/v1/chat/completions"
JSON: Headers = (("content-type", "application/json"),)
TURNS = 6


def bodies() -> list[bytes]:
    turns = [{"role": "user", "content": f"turn {n} {'x' * 300}"} for n in range(TURNS)]
    return [json.dumps({"model": "m", "messages": turns[: n + 1]}).encode() for n in range(TURNS)]


def replies() -> list[Reply | CallFailed]:
    whole = [Reply(200, (*JSON, ("content-length", "5")), b"abcd%d" % n) for n in range(3)]
    stream = Reply(200, (("content-type", "text/event-stream"),), Pieces([b"data: 1\n\n", b"data: 2\n\n"]))
    return [*whole, stream, CallFailed("reset", "by the world"), Reply(500, JSON, b"")]


def recorder(path: Path | None) -> Recorder:
    ticks = itertools.count()
    return Recorder(path, clock=lambda: next(ticks) / 1000, ledger=Ledger(), header={}, keep=False)


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tapes") / "r.tape"
    writing = recorder(path)
    stage = chain(classify(tools=(), sites=Sites()), writing.outer, writing.inner)

    def send(said: Reply | CallFailed) -> Reply:
        if isinstance(said, CallFailed):
            raise said
        return said

    for body, said in zip(bodies(), replies(), strict=True):
        with suppress(CallFailed):
            call = Call("POST", URL, JSON, body, lane="1")
            read(drive(stage(call), lambda _, said=said: send(said), lambda _: None))  # type: ignore[misc]
    writing.close()
    return path


def replayed(path: Path, asked: Sequence[tuple[bytes, str]], *, vouched: bool) -> tuple[str | None, int]:
    """The digest, and how many exchanges were noted."""
    loaded, writing, noted = load_tape(path, known=()), recorder(None), 0
    writing.redactor = loaded.redactor
    player = Player(loaded.matcher, telling=loaded.telling)
    outer, rebuilt = Recorder.outer, Rebuilt(writing)

    def counted(self: Recorder, call: Call, n: int = -1) -> object:
        nonlocal noted
        noted += 1
        return outer(self, call, n)

    left: list[Iterator[bytes]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "outer", counted)
        stage = chain(
            classify(tools=(), sites=Sites()), rebuilt.outer if vouched else writing.outer, player.stage, writing.inner
        )
        for body, how in asked:
            with suppress(CallFailed):
                call = Call("POST", URL, JSON, body, lane="1")
                chunks = pump(drive(stage(call), None, None), None)  # type: ignore[arg-type]
                if how == "read":
                    list(chunks)
                else:
                    next(chunks, None)
                    if how == "leave":
                        chunks.close()
                left.append(chunks)
        rebuilt.close()
    return writing.digest, noted


def test_what_is_asked_to_the_letter_is_vouched_for_and_has_the_digest_of_the_tape(taped: Path) -> None:
    asked = [(body, "read") for body in bodies()]
    footer = load_tape(taped, known=()).footer
    assert replayed(taped, asked, vouched=False) == (footer.digest, TURNS)
    assert replayed(taped, asked, vouched=True) == (footer.digest, 3)  # the first ones are read, and the failed one


def test_numbers_that_are_not_a_recorders_are_not_vouched_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ticks = bodies(), itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "begin", lambda _: 0)
        writing = Recorder(
            path := tmp_path / "same.tape", clock=lambda: next(ticks), ledger=Ledger(), header={}, keep=False
        )
        stage = chain(classify(tools=(), sites=Sites()), writing.outer, writing.inner)
        for body in asked:
            read(drive(stage(Call("POST", URL, JSON, body, lane="1")), lambda _: Reply(200, (), b"x"), lambda _: None))
        writing.close()
    assert {entry.said for entry in load_tape(path, known=()).matcher.entries} == {b""}
    todo = [(body, "read") for body in asked]
    assert replayed(path, todo, vouched=True) == replayed(path, todo, vouched=False)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, TURNS - 1), st.sampled_from(["read", "leave", "open"]), st.booleans()), max_size=9
    )
)
def test_the_digest_is_what_a_recorder_says(taped: Path, todo: list[tuple[int, str, bool]]) -> None:
    known = bodies()
    asked = [(known[n].replace(b"turn 0", b"turn X") if other else known[n], how) for n, how, other in todo]
    assert replayed(taped, asked, vouched=True)[0] == replayed(taped, asked, vouched=False)[0]
