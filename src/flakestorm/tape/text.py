"""A tape for people: `flakestorm tapes show`. Plain text, one block per exchange.

What an agent, a model or a tool said may hold anything, also sequences that steer a terminal or turn text around.
Every such character is shown as an escape and does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flakestorm.tape.document import said
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.origin import made_here, named_by
from flakestorm.tape.reader import Tape
from flakestorm.wire.base import Said, ToolCall
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.protocols import wire_of

__all__ = ["answer_in", "asked_in", "block", "lines", "plain"]

_WIDTH = 110
# Control characters, line and paragraph separators, and the marks that reorder text to the eye.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def lines(tape: Tape) -> Iterator[str]:
    """The whole tape, without line ends.

    Raises:
        TapeDamaged: a line of the tape cannot be read.
    """
    exchanges, footer = tape.exchanges(), tape.footer
    yield f"tape   {plain(str(tape.path))}"
    yield f"run    {plain(str(tape.header.get('run', '')))}"
    imported = tape.header.get("imported")
    if isinstance(imported, dict):
        yield f"from   {_excerpt(str(imported.get('file', '')))} (imported; it tells no times)"
    if (named := named_by(tape)) is not None:
        yield f"names  {plain(str(named))}"
        yield f"       ({'sealed as yours' if made_here(tape) else 'not known to be yours: it is not run unasked'})"
    yield f"input  {_excerpt(tape.input or '')}"
    for exchange in exchanges:
        yield ""
        yield from block(exchange)
    yield ""
    if footer is None:
        yield "The recording was interrupted: there is no output, and exchanges under way at the end are missing."
    else:
        for at, turn in enumerate(footer.turns, 1):
            yield f"turn {at} {_excerpt(turn.input)}"
            yield f"       {_excerpt(turn.output if turn.error is None else turn.error)}"
        yield f"error  {_excerpt(footer.error)}" if footer.error else f"output {_excerpt(footer.output)}"
        yield f"digest {plain(footer.digest)}"


def block(exchange: Exchange) -> Iterator[str]:
    """One exchange: when, where and how it ended; what was asked; what was said; which faults fired."""
    reply = exchange.reply
    how = str(reply.status or "no reply") + (" stream" if reply.stream else "")
    end = "" if reply.end == "eof" else f"  [{reply.end}]"
    lane = f"  lane {plain(exchange.lane)}" if exchange.lane else ""
    yield f"{exchange.t_ms:10.1f} ms  {plain(str(exchange.site))}  {how}  {exchange.duration_ms:.1f} ms{end}{lane}"
    yield f"    {plain(exchange.method)} {_excerpt(exchange.url)}"
    yield f"    asked  {_excerpt(asked_in(exchange))}"
    yield f"    said   {_excerpt(answer_in(exchange, reply))}"
    if exchange.world is not None:
        yield f"    world  {exchange.world.status or 'no reply'}  {_excerpt(answer_in(exchange, exchange.world))}"
    elif exchange.sent == 0:
        yield "    world  not asked"
    for fault in exchange.faults:
        yield f"    fault  {plain(fault.mode)}" + (f": {_excerpt(fault.detail)}" if fault.detail else "")
    if exchange.note:
        yield f"    note   {_excerpt(exchange.note)}"


def plain(text: str) -> str:
    """The text with every control, separator and reordering character escaped."""
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    return _NAMED.get(sign) or (f"\\x{ord(sign):02x}" if ord(sign) < 0x100 else f"\\u{ord(sign):04x}")


def _excerpt(text: str) -> str:
    shown = plain(text[: 4 * _WIDTH])
    return shown if len(shown) <= _WIDTH else shown[: _WIDTH - 1] + "…"


def asked_in(exchange: Exchange) -> str:
    """What was asked, in words: of a conversation its last turn."""
    body = decode_body(exchange.body, exchange.headers)
    wire = wire_of(exchange.wire)
    asked = None if wire is None else wire.asked(body)
    if asked is None or not asked.turns:
        return body.decode("utf-8", "replace")
    turn = asked.turns[-1]
    results = " ".join(f"{result.name or result.call_id} -> {result.text}" for result in turn.tool_results)
    return f"{turn.role}: {' '.join(part for part in (turn.text, results, _calls(turn.tool_calls)) if part)}"


def answer_in(exchange: Exchange, reply: Recorded) -> str:
    """What was answered, in words: of a model what it said and which tools it asks for."""
    if reply.error is not None and not reply.chunks:
        return reply.error
    meaning = said(exchange, reply) or Said(text=decode_body(reply.body, reply.headers).decode("utf-8", "replace"))
    parts = (meaning.error, meaning.text, _calls(meaning.tool_calls), reply.error)
    finish = f" ({meaning.finish})" if meaning.finish else ""
    return " ".join(part for part in parts if part) + finish


def _calls(calls: tuple[ToolCall, ...]) -> str:
    return " ".join(f"{call.name}({call.arguments})" for call in calls)
