"""A recording in the world's place: what `doctor` plays its runs against.

A call gets what was recorded for the same words to the same place, where that has not been given yet: of calls that are
made side by side, now one comes first and now another. Any other gets the n-th recorded reply of its name, whatever it
asks. So a run that differs goes on, and all of its differences are found and not only the first. It proves nothing
about equality; that is the caller's to judge.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from flakestorm.core.call import Call, Reply, header, with_header
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.tape.match import Matcher
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.servers import Servers
from flakestorm.tape.serving import answering
from flakestorm.tape.telling import Telling
from flakestorm.wire.mcp.protocol import read, to_client
from flakestorm.wire.shape import dump, obj

__all__ = ["rehearsal"]


def rehearsal(
    exchanges: Iterable[Exchange], recall: Callable[[float], None], telling: Telling | None = None
) -> Interceptor:
    """A stage that answers each call with what was recorded for it, and never asks the world. For one run.

    Args:
        exchanges: what was recorded.
        recall: is told when, in the recorded run, each reply began or failed to come, in milliseconds.
        telling: puts the secrets that are known here back into replies.
    """
    return _Rehearsal(sorted(exchanges, key=lambda exchange: exchange.n), recall, telling or Telling()).stage


class _Rehearsal:
    def __init__(self, exchanges: Sequence[Exchange], recall: Callable[[float], None], telling: Telling) -> None:
        self._recall, self._telling = recall, telling
        self._sites = {exchange.site: exchange for exchange in exchanges}
        self._alike: dict[tuple[object, ...], list[Exchange]] = {}
        for exchange in exchanges:
            key = _key(exchange.site, exchange.method, exchange.url, exchange.body)
            self._alike.setdefault(key, []).append(exchange)
        self._named: dict[tuple[str, str], list[Exchange]] = {}
        for exchange in exchanges:
            self._named.setdefault((exchange.kind, exchange.name), []).append(exchange)
        self._given: set[Site] = set()
        self._lock = threading.Lock()
        by_mcp = any(exchange.kind == "mcp" for exchange in exchanges)
        self._servers = Servers(Matcher(exchanges).entries, self._telling) if by_mcp else None

    def stage(self, call: Call) -> Flow:
        with self._lock:
            exchange = self._of(call)
        if exchange is None:
            raise CallFailed("refused", f"nothing was recorded at {call.site}")
        reply = partial(self._reply, exchange, call)
        if self._servers is not None:
            question = call.kind == "mcp" and to_client(call.method, call.url)
            asks = _heard if question else None
            if (flow := self._servers.played(call, exchange.n, reply, asks=asks)) is not None:
                return (yield from flow)
        return reply()

    def _reply(self, exchange: Exchange, call: Call) -> Reply:
        reply = self._telling.heard(exchange.reply)
        heard_ms = reply.heard_ms(exchange.t_ms + exchange.duration_ms)
        if heard_ms is not None:
            self._recall(heard_ms)
        if not reply.status:
            raise CallFailed("timeout" if "timeout" in (reply.error or "").lower() else "reset", reply.error or "")
        return _again(reply, call)

    def _of(self, call: Call) -> Exchange | None:
        """The recorded exchange that answers this call; each does once, as long as there are others."""
        if call.site is None:
            return None
        alike = self._alike.get(_key(call.site, call.method, call.url, call.body), [])
        own = self._sites.get(call.site)
        named = [own, *self._named.get((call.site.kind, call.site.name), ())] if own is not None else []
        free = (exchange for exchange in (*alike, *named) if exchange.site not in self._given)
        found = next(free, own)
        if found is not None:
            self._given.add(found.site)
        return found


def _key(site: Site, method: str, url: str, body: bytes) -> tuple[object, ...]:
    """What is asked of whom, but for the number of a JSON-RPC message."""
    message = read(body) if site.kind == "mcp" else None
    if message is not None:
        params = {**message.params, "_meta": {**obj(message.params.get("_meta")), "progressToken": None}}
        body = dump({**message.document, "id": None, "params": params})
    return site.kind, site.name, method, url, body


def _heard(_: Reply) -> None:
    """What the agent answers to a server is nothing that is judged here."""


def _again(reply: Recorded, call: Call) -> Reply:
    chunks, headers = list(reply.chunks), reply.headers
    if call.kind == "mcp":
        whole = b"".join(chunks)
        numbered = answering(whole, call.body)
        if numbered != whole:
            chunks = [numbered]
            if header(headers, "content-length") is not None:
                headers = with_header(headers, "content-length", str(len(numbered)))
    body = _broken(chunks, reply.error) if reply.end == "broken" else chunks if reply.stream else b"".join(chunks)
    return Reply(reply.status, headers, body, reason=reply.reason)


def _broken(chunks: Iterable[bytes], error: str | None) -> Iterable[bytes]:
    yield from chunks
    raise CallFailed("reset", error or "the recorded reply breaks off here")
