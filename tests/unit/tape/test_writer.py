from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from faults_support import JSON, RESULTS, llm_call, stream, tool_call
from flakestorm.config.model import Chaos, ToolFault
from flakestorm.core.call import PULL, Call, Chunks, Headers, Reply
from flakestorm.core.ledger import Firing, Ledger
from flakestorm.core.pipeline import Flow, Passing, adrive, chain, drive
from flakestorm.core.site import Site
from flakestorm.core.stream import apump, pump
from flakestorm.errors import CallFailed, StageError, TapeError
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.reader import Tape
from flakestorm.tape.redact import Redactor
from flakestorm.tape.said import digest
from flakestorm.tape.writer import Recorder
from tape_support import Clock, Run

SAID = Reply(200, JSON, RESULTS, reason="OK")


def faulty(*faults: ToolFault) -> Schedule:
    return Schedule.of(Chaos(tool_faults=list(faults)))


def stands(run: Run, secret: str) -> str:
    return run.recorder.redactor.placeholder(secret.encode()).decode()


def only(run: Run) -> Exchange:
    assert len(run.recorder.exchanges) == 1
    return run.recorder.exchanges[0]


def test_an_exchange_is_what_was_asked_and_what_was_said() -> None:
    run = Run()

    def send(call: Call) -> Reply:
        run.clock.wait(0.25)
        return SAID

    run.clock.wait(1)
    call = replace(tool_call(), method="POST", headers=JSON, body=b'{"q": "oslo"}', lane="2")
    assert run.ask(call, send) == RESULTS
    exchange = only(run)
    assert (exchange.site, exchange.lane, exchange.wire) == (call.site, "2", "")
    assert (exchange.method, exchange.url, exchange.headers, exchange.body) == (
        "POST",
        call.url,
        JSON,
        b'{"q": "oslo"}',
    )
    assert exchange.reply == Recorded(200, JSON, "OK", [RESULTS], [1250.0], stream=False, end="eof", error=None)
    assert (exchange.world, exchange.sent, exchange.faults) == (None, 1, ())
    assert (exchange.t_ms, exchange.duration_ms) == (1000.0, 250.0)


def test_a_chunk_is_handed_on_before_the_next_is_read_and_timed_when_it_passed() -> None:
    run = Run()
    events: list[str] = []

    def source() -> Iterator[bytes]:
        for n in (b"1", b"2", b"3"):
            events.append(f"made {n.decode()}")
            yield n
            run.clock.wait(0.5)

    for chunk in run.chunks(llm_call(), lambda _: replace(stream(), body=source())):
        events.append(f"got {chunk.decode()}")
    assert events == ["made 1", "got 1", "made 2", "got 2", "made 3", "got 3"]
    reply = only(run).reply
    assert (reply.chunks, reply.at_ms, reply.stream) == ([b"1", b"2", b"3"], [0.0, 500.0, 1000.0], True)


def test_chunks_are_kept_by_reference() -> None:
    run, body = Run(), bytes(1000)
    run.ask(tool_call(), lambda _: Reply(200, (), body))
    assert only(run).reply.chunks[0] is body


async def test_an_asyncio_run_is_recorded_the_same() -> None:
    runs = [Run(), Run()]
    reply = stream(b"data: 1\n\n", b"data: 2\n\n")
    runs[0].ask(llm_call(), lambda _: reply)
    await runs[1].aask(llm_call(), lambda _: reply)
    assert only(runs[0]) == only(runs[1])


def test_what_a_fault_answered_in_the_worlds_place() -> None:
    run = Run(faults=faulty(ToolFault(mode="error")))
    run.ask(tool_call(), lambda _: pytest.fail("the tool was asked"))
    exchange = only(run)
    assert (exchange.reply.status, exchange.sent, exchange.world) == (503, 0, None)
    assert [(f.mode, f.detail) for f in exchange.faults] == [("error", "503 Service Unavailable")]


def test_what_a_fault_changed_is_kept_beside_what_the_world_said() -> None:
    run = Run(faults=faulty(ToolFault(mode="malicious_response", payload="gotcha", calls=[1])))
    run.ask(tool_call(n=1), lambda _: replace(SAID, headers=(*JSON, ("set-cookie", "id=12345678"))))
    run.ask(tool_call(n=2), lambda _: SAID)
    first, second = run.recorder.exchanges
    assert (first.reply.body, first.sent) == (b'"gotcha"', 1)
    assert first.world is not None
    assert (first.world.body, first.world.status, first.world.end) == (RESULTS, 200, "eof")
    assert dict(first.world.headers)["set-cookie"] == f"id={stands(run, '12345678')}"
    assert (second.world, second.faults) == (None, ())


def test_a_fault_that_changed_nothing_the_agent_saw_leaves_one_copy() -> None:
    run = Run(faults=faulty(ToolFault(mode="slow", delay_ms=700)))
    run.ask(tool_call(), lambda _: SAID)
    exchange = only(run)
    assert (exchange.world, exchange.duration_ms) == (None, 700.0)
    assert [f.mode for f in exchange.faults] == ["slow"]


def test_a_difference_without_a_fault_is_not_kept_as_the_worlds() -> None:
    def rewrite(call: Call) -> Flow:
        reply = yield call
        assert reply is not None
        return replace(reply, status=418)

    run = Run(stages=(rewrite,))
    run.ask(tool_call(), lambda _: SAID)
    assert (only(run).reply.status, only(run).world) == (418, None)


def test_a_request_that_goes_out_twice_is_counted_twice() -> None:
    def duplicate(call: Call) -> Flow:
        yield call
        reply = yield call
        assert reply is not None
        return reply

    run = Run(stages=(duplicate,))
    run.ask(tool_call(), lambda _: SAID)
    assert only(run).sent == 2


def test_a_call_that_the_world_failed() -> None:
    run = Run()

    def send(call: Call) -> Reply:
        raise ConnectionError("nobody listens")

    with pytest.raises(ConnectionError):
        run.ask(tool_call(), send)
    exchange = only(run)
    assert (exchange.reply.status, exchange.reply.end, exchange.sent) == (0, "broken", 1)
    assert exchange.reply.error == "ConnectionError: nobody listens"


def test_a_call_that_a_fault_failed() -> None:
    run = Run(faults=faulty(ToolFault(mode="timeout", delay_ms=1500)))
    with pytest.raises(CallFailed):
        run.ask(tool_call(), lambda _: SAID)
    exchange = only(run)
    assert (exchange.reply.status, exchange.reply.error) == (0, "CallFailed: timeout: no answer within 1500 ms")
    assert (exchange.sent, exchange.world, exchange.duration_ms) == (0, None, 1500.0)
    assert [f.mode for f in exchange.faults] == ["timeout"]


def test_a_failure_that_a_fault_hid_is_what_the_world_said() -> None:
    def hide(call: Call) -> Flow:
        assert call.site is not None
        run.ledger.hit.add(call.site)
        try:
            yield call
        except ConnectionError:
            run.ledger.fired.append(Firing(call.site, "hide", "tool"))
        return Reply(200, (), b"all is well")

    def send(call: Call) -> Reply:
        raise ConnectionError("gone")

    run = Run(stages=(hide,))
    assert run.ask(tool_call(), send) == b"all is well"
    world = only(run).world
    assert world is not None
    assert (world.status, world.error, world.end) == (0, "ConnectionError: gone", "broken")


def test_a_stream_that_breaks_keeps_what_came_before() -> None:
    run = Run()

    def source() -> Iterator[bytes]:
        yield b"data: 1\n\n"
        raise CallFailed("reset", "mid-stream")

    with pytest.raises(CallFailed):
        run.ask(llm_call(), lambda _: replace(stream(), body=source()))
    reply = only(run).reply
    assert (reply.status, reply.chunks, reply.end) == (200, [b"data: 1\n\n"], "broken")
    assert reply.error == "CallFailed: reset: mid-stream"


def test_a_cut_by_a_fault_shows_where_the_world_went_on() -> None:
    def cut(call: Call) -> Flow:
        assert call.site is not None
        run.ledger.hit.add(call.site)
        reply = yield call
        assert reply is not None

        def after_one() -> Chunks:
            chunk = yield PULL
            assert chunk is not None
            yield chunk
            assert call.site is not None
            run.ledger.fired.append(Firing(call.site, "cut", "llm"))
            yield PULL
            raise CallFailed("reset", "cut", injected=True)

        return reply.pipe(after_one)

    run = Run(stages=(cut,))
    with pytest.raises(CallFailed):
        run.ask(llm_call(), lambda _: stream(b"1", b"2", b"3"))
    exchange = only(run)
    assert (exchange.reply.chunks, exchange.reply.end) == ([b"1"], "broken")
    assert exchange.world is not None
    assert (exchange.world.chunks, exchange.world.end) == ([b"1", b"2"], "client left")


def test_an_agent_that_stops_reading() -> None:
    run = Run()
    chunks = run.chunks(llm_call(), lambda _: stream(b"1", b"2", b"3"))
    assert next(chunks) == b"1"
    chunks.close()  # type: ignore[attr-defined]
    reply = only(run).reply
    assert (reply.chunks, reply.end, reply.error) == ([b"1"], "client left", None)


def test_a_client_that_stops_at_the_announced_length_has_read_it_all() -> None:
    run = Run()
    said = Reply(200, (("Content-Length", "4"),), [b"12", b"34"])
    chunks = run.chunks(tool_call(), lambda _: said)
    assert [next(chunks), next(chunks)] == [b"12", b"34"]
    chunks.close()  # type: ignore[attr-defined]
    assert only(run).reply.end == "eof"


def test_an_agent_that_leaves_before_a_reply_came() -> None:
    run = Run()
    flow = run.stage(tool_call())
    next(flow)
    flow.close()
    reply = only(run).reply
    assert (reply.status, reply.end, reply.error) == (0, "client left", "the agent left before a reply came")


async def test_a_cancelled_task_is_an_agent_that_left() -> None:
    run, reached = Run(), asyncio.Event()

    async def send(call: Call) -> Reply:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def sleep(seconds: float) -> None: ...

    task = asyncio.ensure_future(adrive(run.stage(tool_call()), send, sleep))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert only(run).reply.end == "client left"


async def test_a_cancelled_reader_is_an_agent_that_left() -> None:
    run = Run()

    async def source() -> AsyncIterator[bytes]:
        yield b"1"
        raise asyncio.CancelledError

    async def send(call: Call) -> Reply:
        return replace(stream(), body=source())

    async def sleep(seconds: float) -> None: ...

    chunks = apump(await adrive(run.stage(llm_call()), send, sleep), sleep)
    assert await anext(chunks) == b"1"
    with pytest.raises(asyncio.CancelledError):
        await anext(chunks)
    assert (only(run).reply.chunks, only(run).reply.end) == ([b"1"], "client left")


def test_a_body_nobody_reads_is_open_until_the_run_is_over() -> None:
    run = Run()
    reply = run.cross(tool_call(), lambda _: SAID)
    assert only(run).duration_ms == 0
    run.clock.wait(2)
    run.recorder.close(output="done")
    exchange = only(run)
    assert (exchange.reply.status, exchange.reply.chunks, exchange.reply.end) == (200, [], "client left")
    assert exchange.duration_ms == 2000.0
    assert b"".join(pump(reply, run.clock.wait)) == RESULTS  # reading on afterwards works and changes nothing
    assert only(run).reply.chunks == []


def test_calls_after_the_end_pass_and_leave_no_trace_in_the_file(tmp_path: Path) -> None:
    run = Run(tmp_path / "r.tape")
    run.recorder.close(output="done")
    assert run.ask(tool_call(), lambda _: SAID) == RESULTS
    tape = Tape.open(tmp_path / "r.tape")
    tape.verify()
    assert tape.exchanges() == []


def test_exchanges_are_listed_in_order_of_arrival_and_filed_in_order_of_end(tmp_path: Path) -> None:
    run = Run(tmp_path / "r.tape")
    first = run.chunks(tool_call("slow"), lambda _: SAID)
    assert next(first)
    run.ask(tool_call("quick"), lambda _: SAID)
    assert list(first) == []
    run.recorder.close(output="done")
    assert [e.name for e in run.recorder.exchanges] == ["slow", "quick"]
    tape = Tape.open(tmp_path / "r.tape")
    assert [e.name for e in tape] == ["quick", "slow"]
    assert tape.exchanges() == run.recorder.exchanges


def test_secrets_never_reach_memory_or_file(tmp_path: Path) -> None:
    secret = "sk-live-0123456789"
    run = Run(tmp_path / "r.tape", faults=faulty(ToolFault(mode="malformed")))
    fields = (("Authorization", f"Bearer {secret}"), ("x-api-key", secret), ("cookie", f"id={secret}"))
    call = replace(tool_call(url=f"https://ann:{secret}@x.test/?key={secret}"), headers=fields)
    run.ask(call, lambda sent: replace(SAID, headers=(*JSON, ("set-cookie", f"id={secret}"))))
    run.recorder.close(output="done")
    assert secret not in repr(run.recorder.exchanges)
    assert secret.encode() not in (tmp_path / "r.tape").read_bytes()


def test_the_agents_own_request_still_carries_its_credentials() -> None:
    run, seen = Run(), list[Call]()
    call = replace(tool_call(), headers=(("authorization", "Bearer 123"),))
    run.ask(call, lambda sent: seen.append(sent) or SAID)  # type: ignore[func-returns-value]
    assert seen == [call]


class Upload:
    """A streamed request body, as a seam offers it."""

    def __init__(self, seen: bytes) -> None:
        self.seen = seen


@pytest.mark.parametrize(
    ("upload", "body", "noted"),
    [
        (Upload(b"sent in pieces"), b"sent in pieces", False),
        (Upload(bytearray(b"x")), b"x", False),
        (object(), b"", True),
    ],
)
def test_a_streamed_request_body(upload: object, body: bytes, noted: bool) -> None:
    run = Run()
    run.ask(replace(tool_call(), upload=upload), lambda _: SAID)
    assert only(run).body == body
    assert ("not on the tape" in only(run).note) is noted


def test_the_file_grows_by_one_whole_line_per_exchange(tmp_path: Path) -> None:
    path = tmp_path / "r.tape"
    run = Run(path)
    sizes = [path.read_bytes().count(b"\n")]
    for n in (1, 2):
        run.ask(tool_call(n=n), lambda _: SAID)
        assert path.read_bytes().endswith(b"\n")
        sizes.append(path.read_bytes().count(b"\n"))
    run.recorder.close(output="done")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert sizes == [1, 2, 3]
    assert len(lines) == 4
    assert {"format": "flakestorm-tape/3", "run": "r-1", "input": "to Oslo"}.items() <= lines[0].items()
    assert [line["site"] for line in lines[1:3]] == ["tool/search#1", "tool/search#2"]
    assert lines[3] == {"output": "done", "error": None, "digest": run.recorder.digest, "chain": lines[3]["chain"]}


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    run = Run(tmp_path / "r.tape")
    run.recorder.close(output="done")
    before = (tmp_path / "r.tape").read_bytes()
    run.recorder.close(output="other")
    assert (tmp_path / "r.tape").read_bytes() == before


def test_two_runs_that_said_the_same_have_one_digest() -> None:
    runs = [Run(), Run()]
    for wait, run in enumerate(runs):
        run.clock.wait(wait)
        run.ask(tool_call(), lambda _: SAID)
        run.recorder.close(output="done")
    assert runs[0].recorder.digest == runs[1].recorder.digest is not None
    other = Run()
    other.ask(tool_call(), lambda _: replace(SAID, body=b"{}"))
    other.recorder.close(output="done")
    assert other.recorder.digest != runs[0].recorder.digest


def test_exchanges_that_end_in_many_threads_are_all_on_the_tape(tmp_path: Path) -> None:
    run, workers = Run(tmp_path / "r.tape"), 8
    barrier = threading.Barrier(workers)

    def work(worker: int) -> None:
        barrier.wait(timeout=10)
        for n in range(1, 26):
            run.ask(replace(tool_call(f"t{worker}", n), lane=str(worker)), lambda _: SAID)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    run.recorder.close(output="done")
    tape = Tape.open(tmp_path / "r.tape")
    tape.verify()
    assert len({e.site for e in tape}) == workers * 25
    assert [e.n for e in tape.exchanges()] == list(range(workers * 25))


def test_a_tape_that_somebody_still_reads_stays_whole_when_another_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "r.tape"
    Run(path).recorder.close(output="old")
    before = path.read_bytes()
    with path.open("rb") as reading:
        Run(path).recorder.close(output="new")
        assert reading.read() == before
    footer = Tape.open(path).footer
    assert footer is not None
    assert footer.output == "new"


def test_a_tape_written_through_a_link_stays_where_the_link_says(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Run(tmp_path / "link").recorder.close(output="done")
    assert (tmp_path / "link").is_symlink()
    assert Tape.open(tmp_path / "real").complete


def test_a_tape_that_cannot_be_created_says_so(tmp_path: Path) -> None:
    with pytest.raises(TapeError, match=r"missing/r\.tape cannot be written: No such file"):
        Recorder(tmp_path / "missing" / "r.tape", clock=Clock(), ledger=Ledger(), header={})


def test_a_full_disk_breaks_no_call_and_is_reported_at_the_end() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    run = Run(full)
    assert run.ask(tool_call(), lambda _: SAID) == RESULTS
    with pytest.raises(TapeError, match="incomplete: No space left on device"):
        run.recorder.close(output="done")
    assert only(run).reply.body == RESULTS


def test_outside_of_classify_the_recorder_says_so() -> None:
    run = Run()
    with pytest.raises(StageError, match="inside the classify stage"):
        drive(run.stage(Call("GET", "https://x.test/")), lambda _: SAID, run.clock.wait)


def test_inner_alone_passes_calls_it_was_not_told_of() -> None:
    run = Run()
    stage = chain(run.recorder.inner)
    assert drive(stage(tool_call()), lambda _: SAID, run.clock.wait) is SAID


def test_what_the_world_was_asked_is_kept_where_a_fault_changed_it(tmp_path: Path) -> None:
    asked = b'{"messages": [{"role": "tool", "tool_call_id": "c1", "content": "fine"}]}'
    run = Run(tmp_path / "a.tape", faults=faulty(ToolFault(mode="malicious_response", payload="obey")))
    for n in (1, 2):
        run.ask(llm_call(n=n, body=asked), lambda _: SAID)
    run.ask(llm_call(n=3, body=b'{"messages": []}'), lambda _: SAID)
    run.recorder.close()
    first, again, last = Tape.open(tmp_path / "a.tape").exchanges()
    assert [exchange.body for exchange in (first, again)] == [asked] * 2
    assert [exchange.world_body for exchange in (first, again)] == [asked.replace(b"fine", b"obey")] * 2
    assert last.world_body is None
    assert [str(firing.site) for firing in first.faults] == ["tool/unknown#1"]
    assert first.faults[0].via == first.site
    assert again.faults == last.faults == ()


def test_a_recorder_that_keeps_nothing_writes_the_same_tape(tmp_path: Path) -> None:
    def record(name: str, *, keep: bool) -> Recorder:
        recorder = Recorder(
            tmp_path / name,
            clock=Clock(),
            ledger=Ledger(),
            header={"run": "r-1"},
            keep=keep,
            redactor=Redactor("0" * 32),
        )
        stage = chain(recorder.outer, recorder.inner)
        for n in range(3):
            call = replace(tool_call(), lane=str(n % 2), body=b"%d" % n)
            for _ in pump(drive(stage(call), lambda _: SAID, lambda _: None), lambda _: None):
                pass
        recorder.close(output="done")
        return recorder

    kept, gone = record("kept", keep=True), record("gone", keep=False)
    assert (len(kept.exchanges), gone.exchanges, gone.count) == (3, [], 3)
    assert kept.digest == gone.digest
    assert (tmp_path / "kept").read_bytes() == (tmp_path / "gone").read_bytes()
    Tape.open(tmp_path / "gone").verify()


def test_an_exchange_that_ends_while_another_is_written_waits_its_turn(tmp_path: Path) -> None:
    """As one does whose stream the garbage collector finds just then."""

    def collect(_: float) -> None:
        if left:
            left.pop().failed(ConnectionResetError("second"))
            assert len((tmp_path / "t.jsonl").read_bytes().splitlines()) == 1  # the header

    recorder = Recorder(tmp_path / "t.jsonl", clock=Clock(), ledger=Ledger(), header={}, reached=collect)
    calls = [Call("GET", "http://x.test/", site=Site("http", "x.test", n)) for n in (1, 2)]
    first, second = (cast(Passing, recorder.outer(call)) for call in calls)
    left = [second]
    first.failed(ConnectionResetError("first"))
    recorder.close(output="done")
    errors = [exchange.reply.error for exchange in Tape.open(tmp_path / "t.jsonl")]
    assert errors == ["ConnectionResetError: first", "ConnectionResetError: second"]


def test_many_exchanges_are_in_the_digest_one_by_one(tmp_path: Path) -> None:
    digests = []
    for keep in (True, False):
        recorder = Recorder(tmp_path / "t.jsonl", clock=Clock(), ledger=Ledger(), header={}, keep=keep)
        for n in range(1, 200):
            site = Site("http", "x.test", n)
            flow = cast(Passing, recorder.outer(Call("GET", f"http://x.test/{n}", site=site)))
            pump_all = pump(flow.answered(Reply(200, JSON, b"%d" % n)), lambda _: None)
            assert b"".join(pump_all) == b"%d" % n
        recorder.close(output="done")
        tape = Tape.open(tmp_path / "t.jsonl")
        assert recorder.digest == digest(tape, "done")
        digests.append(recorder.digest)
    assert digests[0] == digests[1]


class Heard:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def sent(self, site: Site) -> None:
        self.told.append(f"sent {site}")

    def refused(self, site: Site, status: int, headers: Headers) -> None:
        self.told.append(f"{status} {site} {dict(headers)}")

    def explained(self, site: Site, status: int, headers: Headers, body: bytes) -> None:
        self.told.append(f"{status} {site} said {body.decode()}")


BUSY = Reply(429, (("retry-after", "1"),), b"busy")


@pytest.mark.parametrize(
    ("faults", "replies", "told"),
    [
        (
            [],
            [SAID, BUSY],
            [
                "sent tool/search#1",
                "sent tool/search#2",
                "429 tool/search#2 {'retry-after': '1'}",
                "429 tool/search#2 said busy",
            ],
        ),
        (
            [],
            [replace(BUSY, status=503)],
            ["sent tool/search#1", "503 tool/search#1 {'retry-after': '1'}", "503 tool/search#1 said busy"],
        ),
        (
            [],
            [Reply(404), Reply(500, (), b"broken"), Reply(503)],  # no refusals, as far as their heads say
            [
                "sent tool/search#1",
                "sent tool/search#2",
                "500 tool/search#2 said broken",
                "sent tool/search#3",
                "503 tool/search#3 said ",
            ],
        ),
        ([ToolFault(mode="error", error_code=429)], [SAID], []),  # a fault's
        # What a fault changed and the world refused is refused all the same.
        (
            [ToolFault(mode="malicious_response", payload="gotcha")],
            [BUSY],
            ["sent tool/search#1", "429 tool/search#1 {'retry-after': '1'}", "429 tool/search#1 said busy"],
        ),
        (
            [ToolFault(mode="slow", delay_ms=9)],
            [BUSY],
            ["sent tool/search#1", "429 tool/search#1 {'retry-after': '1'}", "429 tool/search#1 said busy"],
        ),
    ],
)
def test_what_the_world_refuses_is_told_and_what_a_fault_says_is_not(
    faults: list[ToolFault], replies: list[Reply], told: list[str]
) -> None:
    heard = Heard()
    run = Run(faults=faulty(*faults), met=heard)
    for n, reply in enumerate(replies, 1):
        run.ask(tool_call(n=n), lambda _, reply=reply: reply)
    assert heard.told == told


def test_what_answers_in_the_worlds_place_refuses_nothing() -> None:
    def instead(_: Call) -> Flow:
        return BUSY
        yield

    heard = Heard()
    run = Run(stages=(instead,), met=heard)
    assert run.ask(tool_call(), lambda _: SAID) == b"busy"
    assert heard.told == []
