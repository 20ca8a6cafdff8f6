"""Agents that are asked over HTTP, launched by flakestorm or already running somewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from msgspec.structs import replace

from flakestorm.agents.client import ExchangeFailed, Response, exchange
from flakestorm.agents.environ import folder_of
from flakestorm.agents.reading import ResponsePath, excerpt, read_body, text_in
from flakestorm.agents.ready import address, listening
from flakestorm.agents.request import Request, RequestTemplate
from flakestorm.agents.reset import Reset
from flakestorm.agents.session import SessionId, check
from flakestorm.config.model import Config
from flakestorm.core.answer import AgentError, Answer
from flakestorm.core.call import header
from flakestorm.engine.ports import Boundary, Channel, Line, Say
from flakestorm.errors import AgentUnreachable, ConfigError, Misuse
from flakestorm.wire.encoding import decode_body, why_packed

if TYPE_CHECKING:
    from flakestorm.agents.instances import Instance, Instances
    from flakestorm.mutations.outgoing import Outgoing

__all__ = ["HttpAgent"]

BODY_LIMIT_BYTES = 64 * 1024 * 1024
REDIRECT_LIMIT = 5
_LOOKED_AT = 2000  # of what comes with an HTTP error
_RETRY_PAUSE_S = 0.05
_KEEPING = (307, 308)
_REDIRECTS = (301, 302, 303, *_KEEPING)
_DEATH_THROES_S = 0.5  # between the breaking of a connection and the end of the process that held it


_Heard = Callable[[Response], None]
_Send = Callable[[Request, _Heard], Awaitable[tuple[Answer, bool]]]


class HttpAgent:
    """An agent behind `agent.endpoint`.

    With `agent.start` it is launched, one instance per concurrent run (see `Instances`), and its calls cross on the
    run's line. Without, it is asked where it is. If a standing gateway is found, its calls through that cross on the
    run's line, one run at a time: nothing tells the calls of two runs of one agent apart.

    Transport failures before any reply are tried again up to `advanced.retries` times: nobody listened, or the
    connection was closed without an answer and without the agent having called anything. An agent that had begun to
    work is not asked twice: what it did may not be done again, and its run would hold two attempts. Everything the
    agent said, and a time-out, is its answer.

    A redirect is followed on the agent's own host if that keeps the request what it is (307 and 308, and any for GET).
    Others are errors: the input would be lost, or go where nobody said it should.

    Args:
        config: the whole configuration.
        boundary: gives launched instances their channels.
        concurrency: how many instances may run at once.

    Raises:
        ConfigError: the `agent` block cannot be used as it is.
    """

    def __init__(self, config: Config, boundary: Boundary, *, concurrency: int) -> None:
        agent = config.agent
        self._agent, self._boundary, self._concurrency = agent, boundary, concurrency
        self._retries = config.advanced.retries
        self._folder = folder_of(config) if agent.start else Path(config.folder).absolute()
        self._template = RequestTemplate(agent)
        self._path = None if agent.response_path is None else ResponsePath(agent.response_path)
        self._reset = Reset(agent, Path(config.folder).absolute())
        self._started = False
        self._instances: Instances | None = None
        self._channel: Channel | None = None
        self._turn = asyncio.Lock()
        for name, value in agent.headers.items():
            if any(control in name + value for control in "\r\n\0"):
                raise ConfigError("header names and values cannot contain line breaks", key=f"agent.headers.{name}")
        if not agent.start and "{port}" in agent.endpoint:
            raise ConfigError(
                "endpoint uses {port}, but there is no start that it could be given to", key="agent.start"
            )
        address(agent.endpoint.replace("{port}", "1"), key="agent.endpoint")
        if agent.session is not None:
            check(agent.session, self._template.render("a prompt"))

    async def start(self) -> None:
        """Launch the first instance, or see that somebody listens at the endpoint.

        Raises:
            AgentUnreachable: it could not be launched, or nobody listens; the message says what to do.
            ConfigError: `start`, `ready` or `{port}` cannot be used as they are.
        """
        if self._started:
            return
        try:
            await self._reset.start()
            await self._start()
        except BaseException:
            await self.close()
            raise
        self._started = True

    async def ask(self, prompt: str, line: Line) -> Answer:
        """One run, reset included."""
        async with self.conversation(line) as say:
            return await say(prompt)

    async def ask_changed(self, prompt: str, line: Line, change: Callable[[Outgoing], Outgoing]) -> Answer:
        """One run by a changed request. What it waits for on purpose is not the agent's time."""
        async with self.conversation(line) as say:
            return await say(prompt, change)

    @asynccontextmanager
    async def conversation(self, line: Line) -> AsyncIterator[Say]:
        """One run of several turns, all of them at one instance and, with `agent.session`, under one id."""
        async with self._reset.turn(instances=self._instances is not None):
            if self._instances is None:
                async with self._turn if self._channel is not None else nullcontext():
                    trouble = await self._reset(base=self._agent.endpoint)
                    yield self._saying(partial(self._ask_elsewhere, line, trouble))
                return
            try:
                instance = await self._instances.take()
            except AgentUnreachable as error:
                trouble = str(error)
                yield self._saying(partial(self._ask_elsewhere, line, trouble))
                return
            whole = [False]
            try:
                trouble = await self._reset(base=instance.endpoint, port=instance.port)
                yield self._saying(partial(self._ask_instance, line, trouble, instance), whole)
            finally:
                self._instances.give(instance, reusable=whole[0])

    def _saying(self, send: _Send, whole: list[bool] | None = None) -> Say:
        """Asks the next turn; `whole` is told whether the instance may go on."""
        session = None if self._agent.session is None else SessionId(self._agent.session)
        able = [False] if whole is None else whole

        async def say(prompt: str, change: Callable[[Outgoing], Outgoing] | None = None) -> Answer:
            able[0] = False
            if lost := self._template.lost(prompt):
                return _unreachable(lost)
            request = self._template.render(prompt)
            if session is not None:
                if session.missing:
                    return _unreachable(session.missing)
                request = session.put(request)
            request = request if change is None else request.changed(change)
            answer, able[0] = await send(request, (lambda _: None) if session is None else session.take)
            return answer

        return say

    async def close(self) -> None:
        """Stop every instance and let go of every connection."""
        try:
            if self._instances is not None:
                await self._instances.close()
        finally:
            await self._reset.close()
            self._started, self._instances, self._channel = False, None, None

    async def _start(self) -> None:
        if self._agent.start:
            from flakestorm.agents.instances import Instances  # only what launches needs the means for it

            self._instances = Instances(self._agent, self._boundary, folder=self._folder, size=self._concurrency)
            self._instances.give(await self._instances.take(), reusable=True)
            return
        host, port = address(self._agent.endpoint, key="agent.endpoint")
        if not await listening(host, port):
            raise AgentUnreachable(
                f"nothing listens on {host}:{port} (agent.endpoint {self._agent.endpoint}); start the agent first, "
                "or give agent.start and flakestorm launches it"
            )
        self._channel = await self._boundary.standing()

    async def _ask_elsewhere(
        self, line: Line, trouble: str | None, request: Request, heard: _Heard
    ) -> tuple[Answer, bool]:
        if trouble:
            return _unreachable(trouble), False
        with nullcontext() if self._channel is None else self._channel.bind(line):
            return await self._send(request, line, heard)

    async def _ask_instance(
        self, line: Line, trouble: str | None, instance: Instance, request: Request, heard: _Heard
    ) -> tuple[Answer, bool]:
        if trouble is None:
            with instance.channel.bind(line):
                answer, whole = await self._send(replace(request, url=instance.endpoint), line, heard)
            if whole:
                return answer, True
        else:
            answer = _unreachable(trouble)
        program = instance.program
        if program.running and answer.error is not None and answer.error.kind == "timeout":
            return answer, False
        try:
            async with asyncio.timeout(_DEATH_THROES_S):
                code = await program.wait()
        except TimeoutError:
            return answer, False
        if trouble is not None:
            return _unreachable(f"{trouble}; the agent {program.ending()}"), False
        crash = AgentError("crash", f"the agent died during the run: it {program.ending()}")
        return replace(answer, error=crash, status=code), False

    async def _send(self, request: Request, line: Line, heard: _Heard) -> tuple[Answer, bool]:
        """Ask, with retries; the answer, and whether a whole reply came."""
        dropped = False
        for attempt in range(self._retries + 1):
            if attempt:
                await asyncio.sleep(_RETRY_PAUSE_S)
            began = time.perf_counter()
            try:
                answer, whole = await self._send_once(request, heard)
            except ExchangeFailed as error:
                if error.how == "refused":
                    failure = self._unreached(request.url, error)
                    continue
                dropped = True
                failure = AgentError("crash", f"the agent closed the connection without a reply ({error})")
                if line.calls or request.delivery is not None:
                    break
            else:
                return replace(answer, latency_ms=max(_since(began) - _waiting_s(request) * 1000, 0.0)), whole
        if dropped and failure.kind == "unreachable":
            failure = AgentError("crash", "the agent closed the connection without a reply, and then took no new ones")
        return Answer(error=failure, latency_ms=_since(began)), False

    def _unreached(self, url: str, error: ExchangeFailed) -> AgentError:
        """What it means that no connection could be made."""
        return AgentError("unreachable", f"{url} cannot be reached: {error}")

    async def _send_once(self, request: Request, heard: _Heard) -> tuple[Answer, bool]:
        """One attempt. Failures before any reply are raised; later ones are the answer."""
        if not self._started:
            raise Misuse("start() comes before ask()")
        try:
            async with asyncio.timeout(self._agent.timeout / 1000 + _waiting_s(request)):
                responses = await _responses(request)
        except TimeoutError:
            return Answer(error=AgentError("timeout", f"no answer within {self._agent.timeout} ms")), False
        except ValueError as error:
            return Answer(error=AgentError("unreachable", f"{request.url} cannot be asked: {error}")), False
        except ExchangeFailed as error:
            if error.how in ("refused", "dropped"):
                raise
            if error.how == "timeout":
                return Answer(error=self._unreached(request.url, error)), False
            what = "the agent's reply broke off" if error.how == "broken" else "the agent's reply is not valid HTTP"
            return Answer(error=AgentError("unreadable", f"{what}: {error}")), False
        for response in responses:
            heard(response)
        answers = [(self._answer(response), response.whole) for response in responses]
        return next((found for found in answers if found[0].error is not None), answers[0])

    def _answer(self, response: Response) -> Answer:
        status = response.status
        body, kind = decode_body(response.body, response.headers), header(response.headers, "content-type")
        if not response.whole or len(body) > BODY_LIMIT_BYTES:
            error = AgentError("unreadable", f"the reply is larger than {BODY_LIMIT_BYTES // 2**20} MB")
            return Answer(error=error, status=status)
        if status in _REDIRECTS:
            where = header(response.headers, "location")
            said = f"redirected to {excerpt(where)}; set agent.endpoint to where it answers" if where else "no Location"
            return Answer(error=AgentError("http", f"HTTP {status} {response.reason}: {said}"), status=status)
        if status >= 400:
            said = excerpt(text_in(body, kind)[:_LOOKED_AT], 500) if body.strip() else "no body"
            return Answer(error=AgentError("http", f"HTTP {status} {response.reason}: {said}"), status=status)
        if packed := why_packed(response.body, response.headers):
            return Answer(error=AgentError("unreadable", f"the reply cannot be read: {packed}"), status=status)
        output = read_body(body, self._path, kind)
        if isinstance(output, AgentError):
            return Answer(error=output, status=status)
        return Answer(output, status=status)


async def _responses(request: Request) -> list[Response]:
    """The reply to the request; of one that is sent several times at once, the replies."""
    if request.delivery is None:
        return [await _follow(request)]
    from flakestorm.agents.delivery import deliver  # only for mutations of the request

    for left in reversed(range(REDIRECT_LIMIT + 1)):
        responses = await deliver(request, request.delivery, limit_bytes=BODY_LIMIT_BYTES)
        onward = _onward(request, responses[0])
        if onward is None or not left:
            break
        request = replace(request, url=onward, params=())
    return responses


def _waiting_s(request: Request) -> float:
    """What the sender itself takes its time for."""
    return 0.0 if request.delivery is None else request.delivery.paused_s


async def _follow(request: Request) -> Response:
    """The reply to the request, after redirects that can be followed; another redirect is the reply itself."""
    for left in reversed(range(REDIRECT_LIMIT + 1)):
        response = await exchange(
            request.method,
            request.url,
            params=request.params,
            headers=request.headers,
            body=request.body,
            limit_bytes=BODY_LIMIT_BYTES,
        )
        onward = _onward(request, response)
        if onward is None or not left:
            break
        request = replace(request, url=onward, params=())
    return response


def _onward(request: Request, response: Response) -> str | None:
    """Where the very same request may be sent instead, if the reply says so."""
    location = header(response.headers, "location")
    if location is None or response.status not in (_REDIRECTS if request.method == "GET" else _KEEPING):
        return None
    here = urlsplit(request.url)
    try:
        there = urlsplit(urljoin(request.url, location))
        same = there.hostname == here.hostname and there.scheme in ("https", here.scheme)
    except ValueError:  # not a URL
        return None
    return there.geturl() if same else None


def _unreachable(message: str) -> Answer:
    return Answer(error=AgentError("unreachable", message))


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
