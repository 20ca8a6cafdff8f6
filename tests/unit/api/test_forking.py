import asyncio
import itertools
import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import flakestorm
from flakestorm.api.forking import fork
from flakestorm.errors import Misuse, TapeMismatch, WorldFailed
from flakestorm.tape.reader import Tape
from upstream import Request, Upstream, document

NAMES = {"search": "*/search", "book": "*/book"}


@pytest.fixture
def up():
    numbers, lock = itertools.count(1), threading.Lock()

    def answer(request: Request):
        with lock:
            return document({"n": next(numbers), "asked": request.json()})

    with Upstream() as upstream:
        upstream.reply("/search", answer)
        upstream.reply("/book", answer)
        yield upstream


def agent(up: Upstream):
    """Searches, and books what it found; both say which run this is."""

    def answer(text: str) -> str:
        run = {"run": str(uuid.uuid4()), "at": time.time()}
        with httpx.Client() as client:
            found = client.post(f"{up.url}/search", json={"to": text, **run}).json()
            booked = client.post(f"{up.url}/book", json={"n": found["n"], "at": time.time()}).json()
        return f"{text} {found['n']} {booked['n']}"

    return answer


@pytest.fixture
def tape(up: Upstream, tmp_path: Path) -> Path:
    path = tmp_path / "a.tape"
    with flakestorm.record(path, input="Rome", tools=NAMES) as recording:
        recording.output = agent(up)("Rome")
    assert recording.output == "Rome 1 2"
    return path


def test_before_the_site_nothing_goes_out_and_after_it_all(up: Upstream, tape: Path, tmp_path: Path) -> None:
    forked = fork(tape, agent(up), at="tool/book#1", to=tmp_path / "b.tape", names=NAMES)
    assert (forked.value, forked.output, forked.served, forked.live) == ("Rome 1 3", "Rome 1 3", 1, ("tool/book#1",))
    assert (up.count("/search"), up.count("/book")) == (1, 2)
    assert forked.environment == "unrestored"
    assert "tool/book#1" in forked.why


def test_the_child_is_a_tape_of_its_own_whose_clock_went_on(up: Upstream, tape: Path, tmp_path: Path) -> None:
    child = tmp_path / "b.tape"
    fork(tape, agent(up), at="tool/book#1", to=child, names=NAMES)
    before = up.count()
    assert flakestorm.replay(child, agent(up), mode="strict", tools=NAMES) == "Rome 1 3"
    assert up.count() == before
    old, new = Tape.open(tape).exchanges(), Tape.open(child).exchanges()
    assert old[0].body == new[0].body
    assert json.loads(new[1].body)["at"] >= json.loads(new[0].body)["at"]
    assert new[0].reply.at_ms == pytest.approx(old[0].reply.at_ms[:1] * len(new[0].reply.at_ms))
    assert new[1].t_ms >= new[0].t_ms


def test_a_tape_may_be_forked_of_a_fork(up: Upstream, tape: Path, tmp_path: Path) -> None:
    reply = b'{"n": 7}'
    fork(tape, agent(up), at="tool/search#1", to=tmp_path / "b.tape", names=NAMES, reply=reply)
    again = fork(
        tmp_path / "b.tape", agent(up), at="tool/book#1", to=tmp_path / "c.tape", names=NAMES, reply='{"n": 9}'
    )
    assert again.value == "Rome 7 9"
    assert again.environment == "pure"
    header = Tape.open(tmp_path / "c.tape").header
    assert (header["parent"]["tape"], header["parent"]["change"]) == ("b.tape", "another reply")


async def test_async_functions_are_awaited(up: Upstream, tmp_path: Path) -> None:
    async def answer() -> str:
        async with httpx.AsyncClient() as client:
            replies = await asyncio.gather(*(client.post(f"{up.url}/search", json={"to": n}) for n in range(3)))
            return " ".join(str(reply.json()["n"]) for reply in replies)

    with flakestorm.record(tmp_path / "a.tape", tools=NAMES):
        await answer()
    at = Tape.open(tmp_path / "a.tape").exchanges()[-1]
    place = json.loads(at.body)["to"]
    forked = await fork(tmp_path / "a.tape", answer, at=at.site, to=tmp_path / "b.tape", names=NAMES, reply='{"n": 77}')
    assert forked.value.split()[place] == "77"
    assert forked.live == ()
    later = await fork(tmp_path / "a.tape", lambda: answer(), at=at.site, to=tmp_path / "c.tape", names=NAMES)
    assert len(later.live) == 1


def test_threads_belong_to_the_fork(up: Upstream, tmp_path: Path) -> None:
    def answer() -> list[int]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda n: httpx.post(f"{up.url}/search", json={"to": n}).json()["n"], range(4)))

    with flakestorm.record(tmp_path / "a.tape", tools=NAMES):
        answer()
    at = Tape.open(tmp_path / "a.tape").exchanges()[-1]
    forked = fork(tmp_path / "a.tape", answer, at=at.site, to=tmp_path / "b.tape", names=NAMES, reply='{"n": 77}')
    assert forked.value[json.loads(at.body)["to"]] == 77
    assert sum(n == 77 for n in forked.value) == 1


def test_a_fault_acts_on_the_recorded_reply_and_both_are_on_the_tape(up: Upstream, tape: Path, tmp_path: Path) -> None:
    before = up.count()
    forked = fork(tape, agent(up), at="tool/book#1", to=tmp_path / "b.tape", names=NAMES, fault="malformed")
    assert up.count() == before
    assert forked.error is not None
    hit = Tape.open(tmp_path / "b.tape").exchanges()[1]
    assert [fault.mode for fault in hit.faults] == ["malformed"]
    assert hit.world is not None
    assert json.loads(hit.world.body)["n"] == 2


def test_a_long_delay_passes_in_the_runs_own_time(up: Upstream, tape: Path, tmp_path: Path) -> None:
    fork(tape, agent(up), at="tool/search#1", to=tmp_path / "b.tape", names=NAMES, fault="slow:3000")
    first, second = Tape.open(tmp_path / "b.tape").exchanges()
    assert second.t_ms - first.t_ms >= 3000
    assert json.loads(second.body)["at"] - json.loads(first.body)["at"] >= 3


def test_pinned_tools_are_never_live(up: Upstream, tape: Path, tmp_path: Path) -> None:
    before = up.count()
    forked = fork(
        tape, agent(up), at="tool/search#1", to=tmp_path / "b.tape", names=NAMES, reply='{"n": 8}', tools="tape"
    )
    assert up.count() == before
    assert len(forked.unanswered) == 1
    assert forked.environment == "pure"
    assert forked.error is not None


def test_restore_is_called_once_before_the_first_live_call(up: Upstream, tape: Path, tmp_path: Path) -> None:
    called: list[tuple[str, int]] = []

    def restore(site: object) -> None:
        httpx.post(f"{up.url}/book", json={"restored": True})
        called.append((str(site), up.count()))

    forked = fork(tape, agent(up), at="tool/search#1", to=tmp_path / "b.tape", names=NAMES, restore=restore)
    assert called == [("tool/search#1", 3)]
    assert forked.environment == "snapshot"
    assert len(forked.live) == 2


def test_without_its_environment_nothing_goes_out(up: Upstream, tape: Path, tmp_path: Path) -> None:
    def restore(_: object) -> None:
        raise OSError("no disk")

    before = up.count()
    with pytest.raises(WorldFailed, match="no disk"):
        fork(tape, agent(up), at="tool/search#1", to=tmp_path / "b.tape", names=NAMES, restore=restore)
    assert up.count() == before


def test_another_program_is_a_mismatch(up: Upstream, tape: Path, tmp_path: Path) -> None:
    before = up.count()
    with pytest.raises(TapeMismatch, match="diverged"):
        fork(tape, lambda _: agent(up)("Oslo"), at="tool/book#1", to=tmp_path / "b.tape", names=NAMES)
    with pytest.raises(TapeMismatch, match="did not come to tool/book#1"):
        fork(tape, lambda _: None, at="tool/book#1", to=tmp_path / "b.tape", names=NAMES)
    assert up.count() == before


def test_misuse_is_told_before_anything_is_run(up: Upstream, tape: Path, tmp_path: Path) -> None:
    def never(_: str) -> None:
        raise AssertionError

    to = tmp_path / "b.tape"
    for told, more in {
        "one change": {"reply": b"", "fault": "empty"},
        "no model call": {"model": "x"},
        "is for a result": {"fault": "empty@result"},
        "not available": {"fault": "nonsense"},
        "another file": {"to": tape},
        "it has tool/search#1": {"at": "tool/book#2"},
        "is not a site": {"at": "book"},
    }.items():
        given = {"at": "tool/book#1", "to": to, **more}
        with pytest.raises(Misuse, match=told):
            fork(tape, never, names=NAMES, **given)  # type: ignore[arg-type]


def test_a_tape_without_command_input_or_function_cannot_be_run(up: Upstream, tmp_path: Path) -> None:
    with flakestorm.record(tmp_path / "n.tape", tools=NAMES):
        httpx.post(f"{up.url}/search", json={})
    with pytest.raises(Misuse, match="names no command"):
        fork(tmp_path / "n.tape", at="tool/search#1", to=tmp_path / "m.tape", names=NAMES)
