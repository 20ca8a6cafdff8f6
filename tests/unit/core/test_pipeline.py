"""The pipeline: order, changes both ways, failures, misuse, and sync == async."""

import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Call, Reply, Sleep
from flakestorm.core.pipeline import Answered, Flow, Passing, adrive, chain, drive
from flakestorm.errors import CallFailed, StageError

CALL = Call("POST", "http://world/")


def no_sleep(seconds: float) -> None:
    raise AssertionError(f"nothing should sleep, but {seconds} s were asked for")


def tag(name: str, log: list[str]):
    def stage(call: Call) -> Flow:
        log.append(f"{name} in")
        reply = yield call
        log.append(f"{name} out")
        return reply

    return stage


def test_no_stage_is_the_world_itself() -> None:
    assert drive(chain()(CALL), lambda call: Reply(body=call.url.encode()), no_sleep).body == b"http://world/"


def test_outermost_first_in_and_last_out() -> None:
    log: list[str] = []
    drive(chain(tag("a", log), tag("b", log))(CALL), lambda _: Reply(), no_sleep)
    assert log == ["a in", "b in", "b out", "a out"]


def test_a_stage_may_answer_without_asking_the_world() -> None:
    log: list[str] = []

    def outage(call: Call) -> Flow:
        return Reply(503)
        yield call

    def world(call: Call) -> Reply:
        raise AssertionError("the world was asked")

    assert drive(chain(tag("outer", log), outage, tag("inner", log))(CALL), world, no_sleep).status == 503
    assert log == ["outer in", "outer out"]


def test_a_stage_may_ask_twice_and_sleep_in_between() -> None:
    asked: list[str] = []
    slept: list[float] = []

    def again(call: Call) -> Flow:
        yield call
        yield Sleep(1.5)
        return (yield Call("GET", "http://world/again"))

    drive(chain(again)(CALL), lambda call: asked.append(call.url) or Reply(), slept.append)
    assert (asked, slept) == (["http://world/", "http://world/again"], [1.5])


def test_what_send_raises_can_be_caught_by_a_stage() -> None:
    def rescue(call: Call) -> Flow:
        try:
            return (yield call)
        except ConnectionError as error:
            return Reply(502, body=str(error).encode())

    def down(call: Call) -> Reply:
        raise ConnectionError("nobody home")

    assert drive(chain(rescue)(CALL), down, no_sleep) == Reply(502, body=b"nobody home")


def test_what_no_stage_catches_reaches_the_caller_as_the_same_object() -> None:
    error = ConnectionError("nobody home")

    def down(call: Call) -> Reply:
        raise error

    with pytest.raises(ConnectionError) as caught:
        drive(chain(tag("a", []), tag("b", []))(CALL), down, no_sleep)
    assert caught.value is error


def test_a_failure_injected_by_an_inner_stage_is_seen_by_outer_ones() -> None:
    seen: list[str] = []

    def watch(call: Call) -> Flow:
        try:
            return (yield call)
        except CallFailed as error:
            seen.append(error.how)
            raise

    def time_out(call: Call) -> Flow:
        raise CallFailed("timeout", injected=True)
        yield call

    with pytest.raises(CallFailed):
        drive(chain(watch, time_out)(CALL), lambda _: Reply(), no_sleep)
    assert seen == ["timeout"]


def test_a_sleep_that_raises_is_thrown_into_the_stage() -> None:
    closed: list[str] = []

    def slow(call: Call) -> Flow:
        try:
            yield Sleep(30)
        finally:
            closed.append("closed")
        return (yield call)

    def impatient(seconds: float) -> None:
        raise CallFailed("timeout", f"gave up before {seconds} s", injected=True)

    with pytest.raises(CallFailed, match="gave up"):
        drive(chain(slow)(CALL), lambda _: Reply(), impatient)
    assert closed == ["closed"]


class NotAGenerator:
    def __call__(self, call: Call) -> Reply:
        return Reply()


def yields_a_string(call: Call) -> Flow:
    yield "inward, please"  # type: ignore[misc]
    return Reply()


def returns_nothing(call: Call) -> Flow:
    yield call


def returns_a_dict(call: Call) -> Flow:
    yield call
    return {"status": 200}  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("stage", "line", "message"),
    [
        (NotAGenerator(), None, "must be a generator function"),
        (yields_a_string, yields_a_string.__code__.co_firstlineno + 1, "yielded 'inward, please'"),
        (returns_nothing, returns_nothing.__code__.co_firstlineno, "forget `return reply`"),
        (returns_a_dict, returns_a_dict.__code__.co_firstlineno, "returned {'status': 200}"),
    ],
)
def test_a_stage_that_breaks_the_rules_is_named_with_file_and_line(stage, line, message) -> None:
    with pytest.raises(StageError) as caught:
        drive(chain(tag("fine", []), stage)(CALL), lambda _: Reply(), no_sleep)
    assert f"{__file__}:" in str(caught.value)
    assert line is None or f":{line} (" in str(caught.value)
    assert message in str(caught.value)


def test_a_send_that_gives_no_reply_is_named() -> None:
    with pytest.raises(StageError, match="the driver's send must give a Reply"):
        drive(chain()(CALL), lambda _: None, no_sleep)  # type: ignore[arg-type,return-value]


def test_stages_are_closed_when_the_caller_is_cancelled() -> None:
    closed: list[str] = []

    def watch(call: Call) -> Flow:
        try:
            return (yield call)
        finally:
            closed.append("closed")

    async def forever(call: Call) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError

    async def go() -> None:
        task = asyncio.ensure_future(adrive(chain(watch)(CALL), forever, asyncio.sleep))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert closed == ["closed"]


# --- stages that let a call pass ------------------------------------------------------------------------------------


class Seen(Passing):
    """Notes what comes back."""

    def __init__(self, call: Call, log: list[object], number: int) -> None:
        super().__init__(call)
        self.log, self.number = log, number

    def answered(self, reply: Reply) -> Reply:
        self.log.append((reply.status, self.number))
        return Reply(reply.status + 1, body=reply.body)

    def failed(self, error: BaseException) -> None:
        self.log.append((type(error).__name__, self.number))


def inward(call: Call, number: int) -> Call:
    return Call("GET", f"{call.url}{number}/")


def test_the_call_itself_goes_inward_and_its_reply_outward() -> None:
    asked: list[str] = []
    reply = Reply()
    flow = chain(lambda call: call, lambda call: inward(call, 1))(CALL)
    assert drive(flow, lambda call: asked.append(call.url) or reply, no_sleep) is reply
    assert drive(CALL, lambda call: asked.append(call.url) or reply, no_sleep) is reply
    assert asked == ["http://world/1/", "http://world/"]


def test_one_that_passes_sees_the_reply_or_the_failure_of_what_is_further_in() -> None:
    log: list[object] = []
    flow = chain(lambda call: Seen(call, log, 1), lambda call: Seen(call, log, 2))
    assert drive(flow(CALL), lambda _: Reply(200), no_sleep).status == 202
    with pytest.raises(CallFailed):
        drive(flow(CALL), fails, no_sleep)
    assert log == [(200, 2), (201, 1), ("CallFailed", 2), ("CallFailed", 1)]


def fails(_: Call) -> Reply:
    raise CallFailed("reset", "by the world")


def test_one_that_breaks_on_the_reply_is_a_failure_for_those_outside_it_only() -> None:
    class Broken(Seen):
        def answered(self, reply: Reply) -> Reply:
            raise ValueError("broken")

    log: list[object] = []
    flow = chain(lambda call: Seen(call, log, 1), lambda call: Broken(call, log, 2), lambda call: Seen(call, log, 3))
    with pytest.raises(ValueError, match="broken"):
        drive(flow(CALL), lambda _: Reply(200), no_sleep)
    assert log == [(200, 3), ("ValueError", 1)]


def test_one_that_passes_is_told_when_nobody_waits_any_longer() -> None:
    log: list[object] = []

    async def forever(_: Call) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError

    async def go(*stages: object) -> None:
        task = asyncio.ensure_future(adrive(chain(*stages)(CALL), forever, asyncio.sleep))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go(lambda call: Seen(call, log, 1)))
    asyncio.run(go(lambda call: Seen(call, log, 2), tag("inner", [])))
    flow = chain(lambda call: Seen(call, log, 3), tag("inner", []))(CALL)
    next(flow)
    flow.close()
    assert log == [("CancelledError", 1), ("CancelledError", 2), ("GeneratorExit", 3)]


def test_one_that_has_the_answer_runs_nothing_further_in() -> None:
    log: list[object] = []
    said = Answered(Reply(200))
    flow = chain(lambda call: Seen(call, log, 1), lambda _: said, tag("inner", []))(CALL)
    assert type(flow) is Answered
    assert drive(flow, fails, no_sleep).status == 201
    assert chain(lambda _: said)(CALL) is said
    assert drive(said, fails, no_sleep) is said.reply
    assert asyncio.run(adrive(said, None, None)) is said.reply  # type: ignore[arg-type]

    def within(call: Call) -> Flow:
        return (yield from said)

    outer: list[str] = []
    assert drive(chain(tag("outer", outer), within)(CALL), fails, no_sleep).status == 200
    with pytest.raises(KeyError):
        said.throw(KeyError())
    said.close()
    assert (log, outer) == ([(200, 1)], ["outer in", "outer out"])


def test_one_that_breaks_on_an_answer_is_a_failure_for_those_outside_it_only() -> None:
    class Broken(Seen):
        def answered(self, reply: Reply) -> Reply:
            raise ValueError("broken")

    log: list[object] = []
    flow = chain(lambda call: Seen(call, log, 1), lambda call: Broken(call, log, 2), lambda _: Answered(Reply(200)))
    with pytest.raises(ValueError, match="broken"):
        drive(flow(CALL), fails, no_sleep)
    assert log == [("ValueError", 1)]


def test_one_that_gives_no_reply_outward_is_an_error() -> None:
    class Forgetful(Seen):
        def answered(self, reply: Reply) -> Reply:
            return None  # type: ignore[return-value]

    with pytest.raises(StageError, match="must give a Reply"):
        drive(chain(lambda call: Forgetful(call, [], 1))(CALL), lambda _: Reply(), no_sleep)
    with pytest.raises(StageError, match="must give a Reply"):
        drive(chain(lambda call: Forgetful(call, [], 1), lambda _: Answered(Reply()))(CALL), fails, no_sleep)
    with pytest.raises(StageError, match="must return a Reply"):
        drive(chain(tag("outer", []), lambda call: Forgetful(call, [], 1))(CALL), lambda _: Reply(), no_sleep)


KINDS = ["pass", "sleep", "twice", "catch", "answer", "fail"]
STEPS = st.lists(st.sampled_from([*KINDS, "hand on", "see", "refuse", "told"]), max_size=6)


def step(kind: str, number: int, log: list[object], *, plain: bool = True):
    """A stage.

    Args:
        plain: whether one that lets calls pass says so, or runs as the generator that does the same.
    """

    def stage(call: Call) -> Flow:
        log.append((kind, number, call.url))
        if kind == "sleep":
            yield Sleep(number)
        if kind in ("answer", "told"):
            return Reply(200 + number)
        if kind in ("fail", "refuse"):
            raise CallFailed("reset", str(number), injected=True)
        if kind == "twice":
            yield call
        try:
            reply = yield inward(call, number)
        except CallFailed as error:
            if kind == "catch":
                return Reply(502)
            if kind == "see":
                log.append((type(error).__name__, number))
            raise
        if kind == "hand on":
            return reply
        log.append((reply.status, number))
        return Reply(reply.status + 1, body=reply.body) if kind == "see" else reply

    def passing(call: Call) -> Flow | Call:
        log.append((kind, number, call.url))
        if kind == "told":
            return Answered(Reply(200 + number))
        if kind == "refuse":
            raise CallFailed("reset", str(number), injected=True)
        return inward(call, number) if kind == "hand on" else Seen(inward(call, number), log, number)

    return passing if plain and kind not in KINDS else stage


def outcome(go) -> object:
    try:
        return go()
    except CallFailed as error:
        return str(error)


@given(STEPS)
def test_sync_and_async_drivers_agree(kinds: list[str]) -> None:
    def run(log: list[object]):
        return chain(*[step(kind, i, log) for i, kind in enumerate(kinds)])(CALL)

    left: list[object] = []
    right: list[object] = []

    async def asend(call: Call) -> Reply:
        right.append(call.url)
        return Reply(body=call.url.encode())

    async def asleep(seconds: float) -> None:
        right.append(seconds)

    def send(call: Call) -> Reply:
        left.append(call.url)
        return Reply(body=call.url.encode())

    sync = outcome(partial(drive, run(left), send, left.append))
    other = outcome(lambda: asyncio.run(adrive(run(right), asend, asleep)))
    assert (sync, left) == (other, right)


@given(STEPS, st.booleans())
def test_to_pass_is_what_the_generator_would_do(kinds: list[str], works: bool) -> None:
    def run(*, plain: bool) -> tuple[object, list[object]]:
        log: list[object] = []

        def send(call: Call) -> Reply:
            log.append(call.url)
            return Reply(body=call.url.encode()) if works else fails(call)

        flow = chain(*[step(kind, i, log, plain=plain) for i, kind in enumerate(kinds)])(CALL)
        return outcome(partial(drive, flow, send, log.append)), log

    assert run(plain=True) == run(plain=False)
