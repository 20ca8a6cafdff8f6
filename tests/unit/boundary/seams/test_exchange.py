"""One call through the pipeline and back: what is let go of, when, and what the agent sees."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

import pytest

from flakestorm.boundary.patience import Patience
from flakestorm.boundary.seams.exchange import (
    AsyncBody,
    AsyncExchange,
    AsyncLive,
    Body,
    Exchange,
    Live,
    Moment,
)
from flakestorm.core.call import PULL, Call, Chunks, Reply
from flakestorm.core.clock import Clock
from flakestorm.core.pipeline import Flow, chain
from flakestorm.errors import CallFailed

CALL = Call("GET", "http://tools.test/x")


class Spelled(Exception):
    pass


def spell(failed: CallFailed, moment: Moment) -> BaseException:
    return Spelled(failed.how, moment)


class World:
    """Answers each request with its number in three chunks, and counts what is still open."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.sent, self.open, self.failure = 0, 0, failure

    def _chunks(self, n: int) -> Iterator[bytes]:
        for part in (b"a", b"b", b"c"):
            yield b"%d%b" % (n, part)
            if self.failure is not None:
                raise self.failure

    def _close(self) -> None:
        self.open -= 1

    def send(self, call: Call) -> Reply:
        self.sent, self.open = self.sent + 1, self.open + 1
        return Reply(200, body=Live(self._chunks(self.sent), self._close))

    async def asend(self, call: Call) -> Reply:
        self.sent, self.open = self.sent + 1, self.open + 1

        async def chunks(source: Iterator[bytes]) -> AsyncIterator[bytes]:
            for chunk in source:
                yield chunk

        async def close() -> None:
            self._close()

        return Reply(200, body=AsyncLive(chunks(self._chunks(self.sent)), close))


class Ended:
    """A stage that notes how the body ended."""

    def __init__(self) -> None:
        self.how: list[str] = []

    def __call__(self, call: Call) -> Flow:
        reply = yield call
        assert isinstance(reply, Reply)
        return reply.pipe(self._watch)

    def _watch(self) -> Chunks:
        try:
            while (chunk := (yield PULL)) is not None:
                yield chunk
            self.how.append("eof")
        except BaseException as error:
            self.how.append(type(error).__name__)
            raise


def ask_twice_return_first(call: Call) -> Flow:
    first = yield call
    yield call
    assert isinstance(first, Reply)
    return first


def ask_and_answer_otherwise(call: Call) -> Flow:
    yield call
    return Reply(503, body=b"down")


def ask_and_fail(call: Call) -> Flow:
    yield call
    raise CallFailed("reset", injected=True)


def cut(call: Call) -> Flow:
    def transducer() -> Chunks:
        chunk = yield PULL
        assert chunk is not None
        yield chunk
        raise CallFailed("timeout", injected=True)

    reply = yield call
    assert isinstance(reply, Reply)
    return reply.pipe(transducer)


def exchange(world: World) -> Exchange:
    return Exchange(world.send, spell, lambda: Patience(Clock(time.monotonic)))


def aexchange(world: World) -> AsyncExchange:
    return AsyncExchange(world.asend, spell, lambda: Patience(Clock(time.monotonic)))


def test_the_body_is_read_as_it_is_asked_for_and_let_go_of_at_its_end() -> None:
    world, ended = World(), Ended()
    crossing = exchange(world)
    body = Body(crossing.cross(chain(ended)(CALL)), crossing)
    assert (next(body), world.open) == (b"1a", 1)
    assert (list(body), world.open, ended.how) == ([b"1b", b"1c"], 0, ["eof"])
    body.close()
    assert (list(body), world.open) == ([], 0)


@pytest.mark.parametrize("read", [0, 1])
def test_leaving_early_is_noticed_however_little_was_read(read: int) -> None:
    world, ended = World(), Ended()
    crossing = exchange(world)
    body = Body(crossing.cross(chain(ended)(CALL)), crossing)
    for _ in range(read):
        next(body)
    body.close()
    assert (ended.how, world.open, list(body)) == (["GeneratorExit"], 0, [])


def test_the_first_of_two_answers_is_whole_though_its_connection_was_let_go_of() -> None:
    world = World()
    crossing = exchange(world)
    reply = crossing.cross(chain(ask_twice_return_first)(CALL))
    assert (world.sent, world.open) == (2, 0)
    assert list(Body(reply, crossing)) == [b"1a", b"1b", b"1c"]


def test_what_broke_the_first_of_two_answers_is_kept_for_its_reader() -> None:
    crossing = exchange(World(OSError("gone")))
    body = Body(crossing.cross(chain(ask_twice_return_first)(CALL)), crossing)
    assert next(body) == b"1a"
    with pytest.raises(OSError, match="gone"):
        next(body)


def test_an_answer_that_reaches_nobody_is_let_go_of_at_once() -> None:
    world = World()
    crossing = exchange(world)
    reply = crossing.cross(chain(ask_and_answer_otherwise)(CALL))
    assert (world.open, list(Body(reply, crossing))) == (0, [b"down"])


def test_a_failed_call_is_spelled_and_lets_go() -> None:
    world = World()
    with pytest.raises(Spelled) as caught:
        exchange(world).cross(chain(ask_and_fail)(CALL))
    assert (caught.value.args, world.open) == (("reset", "call"), 0)
    assert isinstance(caught.value.__cause__, CallFailed)


def test_a_cut_body_is_spelled_and_lets_go() -> None:
    world = World()
    crossing = exchange(world)
    body = Body(crossing.cross(chain(cut)(CALL)), crossing)
    assert next(body) == b"1a"
    with pytest.raises(Spelled) as caught:
        next(body)
    assert (caught.value.args, world.open, list(body)) == (("timeout", "body"), 0, [])


def test_what_breaks_in_the_world_keeps_its_identity() -> None:
    failure, ended = OSError("gone"), Ended()
    world = World(failure)
    crossing = exchange(world)
    body = Body(crossing.cross(chain(ended)(CALL)), crossing)
    next(body)
    with pytest.raises(OSError, match="gone") as caught:
        next(body)
    assert (caught.value, ended.how, world.open) == (failure, ["OSError"], 0)


def test_whether_a_stage_changed_the_head_is_known() -> None:
    live = Live(iter(()), lambda: None)
    live.reply = Reply(200, (("a", "b"),), live)
    assert live.same_head(live.reply.pipe(Ended()._watch))
    assert not live.same_head(Reply(201, live.reply.headers, live))
    assert not live.same_head(Reply(200, (("a", "c"),), live))


async def test_asyncio_reads_and_lets_go_likewise() -> None:
    world, ended = World(), Ended()
    crossing = aexchange(world)
    body = AsyncBody(await crossing.cross(chain(ended)(CALL)), crossing)
    assert (await anext(body), world.open) == (b"1a", 1)
    assert ([chunk async for chunk in body], world.open, ended.how) == ([b"1b", b"1c"], 0, ["eof"])
    await body.aclose()


@pytest.mark.parametrize("read", [0, 1])
async def test_leaving_early_is_noticed_under_asyncio(read: int) -> None:
    world, ended = World(), Ended()
    crossing = aexchange(world)
    body = AsyncBody(await crossing.cross(chain(ended)(CALL)), crossing)
    for _ in range(read):
        await anext(body)
    await body.aclose()
    assert (ended.how, world.open, [chunk async for chunk in body]) == (["GeneratorExit"], 0, [])


async def test_asking_twice_under_asyncio() -> None:
    world = World()
    crossing = aexchange(world)
    reply = await crossing.cross(chain(ask_twice_return_first)(CALL))
    assert (world.sent, world.open) == (2, 0)
    assert [chunk async for chunk in AsyncBody(reply, crossing)] == [b"1a", b"1b", b"1c"]


async def test_failures_under_asyncio_are_spelled_and_let_go() -> None:
    world = World()
    with pytest.raises(Spelled):
        await aexchange(world).cross(chain(ask_and_fail)(CALL))
    assert world.open == 0
    crossing = aexchange(world)
    body = AsyncBody(await crossing.cross(chain(cut)(CALL)), crossing)
    assert await anext(body) == b"2a"
    with pytest.raises(Spelled):
        await anext(body)
    assert world.open == 0


async def test_an_answer_that_reaches_nobody_is_let_go_of_under_asyncio() -> None:
    world = World()
    crossing = aexchange(world)
    reply = await crossing.cross(chain(ask_and_answer_otherwise)(CALL))
    assert (world.open, [chunk async for chunk in AsyncBody(reply, crossing)]) == (0, [b"down"])
