"""From a tape to a session: what the agent was asked, and what its tools said to it, by name and order.

Where a seam saw a tool's calls, their replies are taken as the agent saw them. Of a tool that ran unseen, the results
are taken as the model was told them. An unnamed HTTP service is no tool, unless a tool fault hit it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from flakestorm.config.replays import ReplaySession, ToolResponse
from flakestorm.core.call import header
from flakestorm.core.site import Site
from flakestorm.tape.document import said
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.classify import UNNAMED
from flakestorm.wire.conversation import CallNames, tool_results
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.mcp.protocol import WORK, messages, read
from flakestorm.wire.mcp.result import ABSENT, read_json
from flakestorm.wire.results import Key
from flakestorm.wire.shape import obj, objects, string

__all__ = ["session_of", "tool_responses"]

_OURS = re.compile(r"^CallFailed: (?:(?:timeout|reset|refused): )?")


def session_of(
    exchanges: Sequence[Exchange],
    *,
    id: str,  # noqa: A002 -- as the keys are called
    input: str | list[str],  # noqa: A002
    contract: str,
    **more: Any,
) -> ReplaySession:
    """The session that a run is.

    Args:
        exchanges: its tape, in order of arrival.
        id, input, contract, more: the session's other keys.
    """
    return ReplaySession(id=id, input=input, contract=contract, tool_responses=tool_responses(exchanges), **more)


def tool_responses(exchanges: Sequence[Exchange]) -> list[ToolResponse]:
    """What the tools of a run said, in order.

    Args:
        exchanges: its tape, in order of arrival.
    """
    broken = {f.site: f.mode for x in exchanges for f in x.faults if f.family in ("tool", "mcp")}
    attacked = {f.site for x in exchanges for f in x.faults if f.family == "context"}
    hit = {site.name for site in broken if site.kind == "http"}
    crossing = {x.name for x in exchanges if x.kind in ("tool", "mcp")}
    told = _Told(crossing, broken, attacked)
    found: list[ToolResponse] = []
    for x in exchanges:
        if x.kind == "llm":
            found += told.by(x)
        elif x.kind == "tool" or (x.kind == "http" and x.name in hit) or (x.kind == "mcp" and _works(x)):
            found.append(_called(x, broken.get(x.site), x.site in attacked))
    return found


def _works(x: Exchange) -> bool:
    message = read(decode_body(x.body, x.headers))
    return message is not None and message.method in WORK


def _called(x: Exchange, fault: str | None, attacked: bool) -> ToolResponse:
    reply = x.world if attacked and x.world is not None else x.reply  # the attack itself is played again
    response, status = _said(x, reply)
    return ToolResponse(
        tool=x.name, response=response, status=status, latency_ms=round(x.duration_ms) or None, fault=fault
    )


def _said(x: Exchange, reply: Recorded) -> tuple[Any, int | None]:
    if reply.status == 0 or reply.end == "broken":
        return _OURS.sub("", reply.error or "") or "the connection broke", 0
    body = decode_body(reply.body, reply.headers)
    if x.kind == "mcp":
        return _mcp(body)
    return _value(reply, body), None if reply.status == 200 else reply.status


def _value(reply: Recorded, body: bytes) -> Any:
    if not body:
        return None
    text = body.decode("utf-8", "replace")
    if "json" not in (header(reply.headers, "content-type") or "").lower():
        return text
    document = read_json(text)
    return text if document is ABSENT or document is None else document


def _mcp(body: bytes) -> tuple[Any, int | None]:
    answer = next((doc for doc in messages(body) if "result" in doc or "error" in doc), None)
    if answer is None:
        return body.decode("utf-8", "replace") or None, None
    if "error" in answer:
        return string(obj(answer["error"]).get("message")) or "the server refused", 500
    result = {key: value for key, value in obj(answer["result"]).items() if key not in ("resultType", "_meta")}
    content = objects(result.get("content"))
    texts = [string(block.get("text")) for block in content if block.get("type") == "text"]
    if result.get("isError") is True:
        return "\n".join(texts), 500
    plain = len(texts) == len(content) == 1 and "structuredContent" not in result
    return (texts[0], None) if plain else (result, None)


class _Told:
    """The results that models were told of tools whose calls nobody saw, each once."""

    def __init__(self, crossing: set[str], broken: dict[Site, str], attacked: set[Site]) -> None:
        self._crossing, self._broken, self._attacked = crossing, broken, attacked
        self._names, self._met = CallNames(), set[Key]()
        self._counts: dict[str, int] = {}

    def by(self, x: Exchange) -> Iterator[ToolResponse]:
        yield from self._new(x)
        if (meaning := said(x, x.reply)) is not None:
            self._names.learn(meaning.tool_calls)

    def _new(self, x: Exchange) -> Iterable[ToolResponse]:
        asked = decode_body(x.body, x.headers)
        own = tool_results(x.wire, asked, name_of=self._names.name_of)
        told = own if x.world_body is None else tool_results(x.wire, x.world_body, name_of=self._names.name_of)
        for before, after in zip(own, told, strict=False):
            if before.key in self._met or before.name in self._crossing or before.name == UNNAMED:
                continue
            self._met.add(before.key)
            self._counts[before.name] = self._counts.get(before.name, 0) + 1
            site = Site("tool", before.name, self._counts[before.name])
            result = before if site in self._attacked else after
            status = 500 if result.told.failed else None
            yield ToolResponse(tool=result.name, response=result.told.text, status=status, fault=self._broken.get(site))
