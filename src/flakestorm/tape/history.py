"""Conversations that the provider keeps, told again in full where a fork has to.

A request of OpenAI's Responses API may say `previous_response_id` in place of all that went before. In a fork, that may
be a reply which the tape gave and the provider never made, or made otherwise. What it stands for is on the record then:
the live request gets the items themselves. Nothing can be told again of hosted threads and conversations, and of
reasoning that the provider kept to itself; those are refused before anything is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flakestorm.core.call import Call
from flakestorm.tape.model import Exchange
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.shape import Doc, dump, objects, parse, string
from flakestorm.wire.sse import events, looks_like_sse

__all__ = ["Histories", "kept_by_provider"]

_THREADS = re.compile(r"/(?:threads|conversations)(?:/|$)")
_RESPONSES = "openai_responses"


def kept_by_provider(exchanges: Sequence[Exchange], served: Callable[[Exchange], bool]) -> str | None:
    """Why this run cannot be forked, because of what its provider keeps; None if it can.

    Args:
        exchanges: what was recorded.
        served: whether the tape answers this one in the fork, so that its provider knows nothing of it.
    """
    made = {name: exchange for exchange in exchanges if (name := _name(exchange))}
    for exchange in exchanges:
        if _THREADS.search(exchange.url.partition("?")[0]):
            return f"{exchange.site} is about a conversation that the provider keeps ({exchange.url.partition('?')[0]})"
        if exchange.wire != _RESPONSES:
            continue
        asked = _asked(exchange)
        if asked.get("conversation"):
            return f"{exchange.site} goes on with a 'conversation' that the provider keeps"
        before = asked.get("previous_response_id")
        if not before:
            continue
        if before not in made:
            return f"{exchange.site} goes on from the response {before}, which is not on the tape"
        if served(made[before]) and _items(made[before]) is None:
            return f"{made[before].site} holds items that only the provider has (reasoning, or what its own tools did)"
    return None


class Histories:
    """The stage that tells a provider what it does not know.

    Args:
        noted: gives what the fork's recorder has noted so far.
    """

    def __init__(self, noted: Callable[[], Sequence[Exchange]]) -> None:
        self._noted = noted

    def stage(self, call: Call) -> Call:
        """The call, with the items themselves where it names a reply that the provider did not make so."""
        if call.wire != _RESPONSES or b"previous_response_id" not in call.body:
            return call
        asked = parse(decode_body(call.body, call.headers)) or {}
        before = asked.get("previous_response_id")
        made = {name: exchange for exchange in self._noted() if (name := _name(exchange))}
        last = made.get(before) if isinstance(before, str) else None
        if last is None or (last.sent and last.world is None):
            return call
        told: list[Any] = _input(asked)
        seen: set[str] = set()
        while last is not None and isinstance(before, str) and before not in seen:
            seen.add(before)
            told = [*_input(_asked(last)), *(_items(last) or []), *told]
            before = _asked(last).get("previous_response_id")
            last = made.get(before) if isinstance(before, str) else None
        rest = {key: value for key, value in asked.items() if key != "previous_response_id"}
        headers = tuple(field for field in call.headers if field[0].lower() != "content-encoding")
        return replace(call, body=dump({**rest, "input": told}), headers=headers)


def _asked(exchange: Exchange) -> Doc:
    return parse(decode_body(exchange.body, exchange.headers)) or {}


def _input(asked: Doc) -> list[Any]:
    given = asked.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given) if isinstance(given, list) else []


def _response(exchange: Exchange) -> Doc:
    """The response as it stood at the end; empty where there is none."""
    if exchange.wire != _RESPONSES:
        return {}
    body = decode_body(exchange.reply.body, exchange.reply.headers)
    if not looks_like_sse(body, stream=exchange.reply.stream):
        return parse(body) or {}
    last: Doc = {}
    for event in events(body):
        response = (parse(event.data) or {}).get("response") if event.data else None
        last = response if isinstance(response, dict) else last
    return last


def _name(exchange: Exchange) -> str:
    return string(_response(exchange).get("id"))


def _items(exchange: Exchange) -> list[Doc] | None:
    """What a reply said, as a later request can say it; None where it cannot."""
    told: list[Doc] = []
    for item in objects(_response(exchange).get("output")):
        kind = item.get("type")
        if kind == "message":
            parts = objects(item.get("content"))
            text = "".join(string(part.get("text")) or string(part.get("refusal")) for part in parts)
            told.append({"role": "assistant", "content": text})
        elif kind in ("function_call", "custom_tool_call"):
            told.append({key: value for key, value in item.items() if key not in ("id", "status")})
        elif kind == "reasoning" and item.get("encrypted_content"):
            told.append({key: value for key, value in item.items() if key != "status"})
        else:
            return None
    return told
