"""Exchanges without their secrets, on the way to the tape.

The agent gets the real bytes, faults act on them and invariants judge them; only what is kept is cleaned. Of a body
that continues an earlier one only the new part is searched, and a little around it. A secret that a stream delivers in
pieces, over several chunks or several events, is found in what the pieces say together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from flakestorm.core.call import Call, Headers, Repeats, header, track, without_headers
from flakestorm.core.conversation import Turn
from flakestorm.core.regex import later
from flakestorm.tape.delta import Span, common_prefix, common_suffix, replaced
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.tape.naming import SHORTEST
from flakestorm.tape.redact import Redactor
from flakestorm.tape.texts import Ends
from flakestorm.wire.encoding import decode_body

__all__ = ["Cleaner", "cleaned", "redacted"]

_SMALL = 512
_MARGIN = 64  # how far around new text a secret may reach, if no quote or blank ends it before
_NAME = 96  # room for the name that stands before a value
_PLACES = 64
_PLAIN = (b"", b"{", b"[", b"d", b"e")  # JSON and events begin so, compressed bodies do not
# What a stream's events say bit by bit: text, arguments of tool calls, reasoning.
_FRAGMENT = later(
    rb'"(content|text|arguments|partial_json|delta|thinking|reasoning|reasoning_content|response|refusal|input)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)*+)"'
)


class _Seen:
    """A body that was cleaned, and what it was found to hold. `kept` of its bytes the next one probably begins with."""

    __slots__ = ("kept", "raw", "spans", "version")

    def __init__(self, raw: bytes, kept: int, spans: list[Span], version: int) -> None:
        self.raw, self.kept, self.spans, self.version = raw, kept, spans, version

    def ends_of(self, body: bytes, repeats: Repeats | None) -> tuple[int, int]:
        """How much of a later body, at its begin and at its end, is as it was in this one."""
        if repeats is not None and repeats[0] is body and repeats[1] is self.raw:
            known = repeats[2]
        else:
            known = self.kept if self.kept and body.startswith(memoryview(self.raw)[: self.kept]) else 0
        prefix = common_prefix(self.raw, body, known)
        return prefix, common_suffix(self.raw, body, min(len(self.raw), len(body)) - prefix)


class Cleaner:
    """Cleans the exchanges of one tape, in the order they end.

    Args:
        redactor: the tape's.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._seen: dict[str, _Seen] = {}
        self.ends: Ends | None = None
        """What was found out when the body of the last exchange was compared with the one before it; None where it was
        changed."""

    def exchange(self, exchange: Exchange, *, known: int = -1, repeats: Repeats | None = None) -> Exchange:
        """The exchange without secrets; the very object where there are none. It is not changed.

        Args:
            known: the redactor's version before it cleaned the URL and the header fields.
            repeats: what is known of its body; see `Call`.
        """
        redactor, body, reply = self._redactor, exchange.body, exchange.reply
        place = f"{exchange.lane} {exchange.url}"
        self.ends = None
        if self._nothing_in(exchange, place, body, known, repeats):
            return exchange
        prefix, suffix = self._discover_new(place, body)
        plain = _unpacked(body, exchange.headers)
        if plain is not None:
            redactor.discover(plain)
        answers = [_Body(each, redactor) for each in (reply, exchange.world) if each is not None]
        world_body = exchange.world_body
        if world_body is not None:
            redactor.discover(world_body)
        changed: dict[str, object] = {}
        if (clean := self._known_out(place, body, prefix, suffix)) is not body:
            changed["body"] = clean
        if plain is not None and (spans := redactor.spans(plain)):
            changed["body"] = replaced(plain, spans)
            changed["headers"] = without_headers(exchange.headers, "content-encoding")
        for name, answer in zip(("reply", "world"), answers, strict=False):
            if (said := answer.clean()) is not answer.reply:
                changed[name] = said
        if world_body is not None and (spans := redactor.spans(world_body)):
            changed["world_body"] = replaced(world_body, spans)
        headers = redactor.headers(exchange.headers)
        if headers is not exchange.headers and headers != exchange.headers:
            changed["headers"] = redactor.headers(changed.get("headers", headers))  # type: ignore[arg-type]
        if (url := redactor.url(exchange.url)) != exchange.url:
            changed["url"] = url
        if exchange.note and (note := redactor.text(exchange.note)) != exchange.note:
            changed["note"] = note
        if exchange.faults:
            faults = tuple(replace(fault, detail=redactor.text(fault.detail)) for fault in exchange.faults)
            if faults != exchange.faults:
                changed["faults"] = faults
        return replace(exchange, **changed) if changed else exchange  # type: ignore[arg-type]

    def _nothing_in(self, exchange: Exchange, place: str, body: bytes, known: int, repeats: Repeats | None) -> bool:
        """Whether there is plainly no secret in an exchange of the usual kind, told by one pass over what is new."""
        redactor, reply = self._redactor, exchange.reply
        answer, new, seen, prefix, suffix = reply.body, body, None, 0, 0
        if (
            reply.stream or reply.error or exchange.world is not None or exchange.world_body is not None
            or exchange.faults or exchange.note or redactor.patterns.entries
            or body[:1] not in _PLAIN or answer[:1] not in _PLAIN
        ):  # fmt: skip
            return False
        if len(body) >= _SMALL:
            seen = self._before(place)
            if seen is None or seen.version != redactor.version or seen.spans:
                return False
            prefix, suffix = seen.ends_of(body, repeats)
            start, end = _around(body, prefix, suffix, redactor.longest)
            new = body[start:end]
        if not redactor.silent(b"%b\n%b" % (new, answer)):
            return False
        if len(body) >= _SMALL and seen is not None:
            self.ends = Ends(seen.raw, prefix, suffix)
            self._keep(place, _Seen(body, len(body) - suffix if suffix else 0, [], redactor.version))
        return known == redactor.version or (
            redactor.url(exchange.url) == exchange.url
            and redactor.headers(exchange.headers) == exchange.headers
            and redactor.headers(reply.headers) == reply.headers
        )

    def plain(self, call: Call, before: bytes, same: int, values: list[str]) -> bool:
        """Whether there is plainly no secret in a live call, of which all but the body and some values is as it was in
        the call before it, and nothing was learned since.

        Args:
            before: the body of that call.
            same: how many bytes of it this one's is known to begin with.
            values: the new ones of header fields.
        """
        redactor, body = self._redactor, call.body
        if redactor.patterns.entries or body[:1] not in _PLAIN:
            return False
        new, place = body, ""
        if len(body) >= _SMALL:
            place = f"{call.lane} {call.url}"
            seen = self._before(place)
            if seen is None or seen.version != redactor.version or seen.spans or seen.raw is not before:
                return False
            new = body[_from(body, same, max(_MARGIN, redactor.longest)) :]
        more = [value.encode("utf-8", "surrogatepass") for value in values if len(value) >= SHORTEST]
        if not redactor.silent(b"\n".join((new, *more)) if more else new):
            return False
        if place:
            self._keep(place, _Seen(body, same, [], redactor.version))
        return True

    def request(self, call: Call) -> tuple[str, Headers, bytes]:
        """Address, header fields and body of a live call, without secrets."""
        redactor, place = self._redactor, f"{call.lane} {call.url}"
        redactor.headers(call.headers), redactor.url(call.url)  # what they give away is looked for in the body, too
        prefix, suffix = self._discover_new(place, call.body)
        plain = _unpacked(call.body, call.headers)
        if plain is not None:
            redactor.discover(plain)
        body = self._known_out(place, call.body, prefix, suffix)
        headers, url = redactor.headers(call.headers), redactor.url(call.url)
        if plain is not None and (spans := redactor.spans(plain)):
            return url, without_headers(headers, "content-encoding"), replaced(plain, spans)
        return url, headers, body

    def _discover_new(self, place: str, body: bytes) -> tuple[int, int]:
        """Learn from what is new in a body; how much of it, at both ends, was there before."""
        seen = self._before(place)
        if len(body) < _SMALL or seen is None or self._redactor.patterns:
            self._redactor.discover(body)
            return 0, 0
        prefix, suffix = seen.ends_of(body, None)
        start, end = _around(body, prefix, suffix, self._redactor.longest)
        self._redactor.discover(body[start:end])
        return prefix, suffix

    def _known_out(self, place: str, body: bytes, prefix: int, suffix: int) -> bytes:
        redactor, seen = self._redactor, self._before(place)
        if len(body) < _SMALL:
            return replaced(body, redactor.spans(body))
        if seen is None or seen.version != redactor.version or not prefix + suffix or redactor.patterns:
            spans = redactor.spans(body)
        else:
            start, end = _around(body, prefix, suffix, redactor.longest)
            shift = len(body) - len(seen.raw)
            before = [span for span in seen.spans if span[0] < start and span[1] <= prefix]
            start = max([start, *(span[1] for span in before)])
            after = [(a + shift, b + shift, c) for a, b, c in seen.spans if a + shift >= max(end, start)]
            spans = [*before, *redactor.spans(body, start, end), *after]
        self._keep(place, _Seen(body, len(body) - suffix if suffix else 0, spans, redactor.version))
        return replaced(body, spans)

    def _before(self, place: str) -> _Seen | None:
        """The last body of a place; where there was none yet, that of all places that `track` takes for the same."""
        seen = self._seen.get(place)
        return self._seen.get(_shared(place)) if seen is None else seen

    def _keep(self, place: str, seen: _Seen) -> None:
        if place not in self._seen and len(self._seen) >= _PLACES:
            self._seen.clear()
        self._seen[place] = seen
        if (shared := _shared(place)) != place:
            self._seen[shared] = seen


def _shared(place: str) -> str:
    lane, _, url = place.partition(" ")
    return f"{track(lane)} {url}" if "." in lane else place


class _Body:
    """A reply and what it says, searched when made and cleaned when everything is known."""

    def __init__(self, reply: Recorded, redactor: Redactor) -> None:
        self.reply, self._redactor, self._joined = reply, redactor, list[tuple[bytes, list[tuple[int, int]]]]()
        body = reply.body
        plain = _unpacked(body, reply.headers)
        self._packed, self._body = plain is not None, body if plain is None else plain
        redactor.discover(self._body)
        if reply.stream:
            self._joined = _joined(self._body)
            for text, _ in self._joined:
                redactor.discover(text)

    def clean(self) -> Recorded:
        redactor, reply = self._redactor, self.reply
        spans = redactor.spans(self._body)
        across = [span for text, pieces in self._joined for span in _across(redactor.spans(text), pieces)]
        if across:
            spans = [s for s in spans if not any(s[0] < a[1] and s[1] > a[0] for a in across)]
            spans = sorted(spans + across)
        headers, error = redactor.headers(reply.headers), redactor.maybe(reply.error)
        if not spans:
            same = headers == reply.headers and error == reply.error
            return reply if same else replace(reply, headers=headers, error=error)
        body = replaced(self._body, spans)
        if header(headers, "content-length") is not None:
            headers = tuple((n, str(len(body))) if n.lower() == "content-length" else (n, v) for n, v in headers)
        if self._packed:  # its chunks were cut where nothing can be cut now
            chunks, at_ms = [body], reply.at_ms[-1:]
            headers = without_headers(headers, "content-encoding")
            return replace(reply, headers=headers, error=error, chunks=chunks, at_ms=at_ms)
        return replace(reply, headers=headers, error=error, chunks=_cut(body, reply.chunks, spans))


def cleaned(text: str, redactor: Redactor) -> str:
    """What an agent said, without secrets; also where it passed on the events of a stream as they came."""
    if "data:" not in text:
        return redactor.text(text)
    reply = Recorded(chunks=[text.encode("utf-8", "surrogatepass")], stream=True)
    return _Body(reply, redactor).clean().body.decode("utf-8", "surrogatepass")


def redacted(turn: Turn, redactor: Redactor) -> Turn:
    """A turn of a conversation, without secrets."""
    error = redactor.maybe(turn.error)
    return replace(turn, input=redactor.text(turn.input), output=cleaned(turn.output, redactor), error=error)


def _around(body: bytes, prefix: int, suffix: int, longest: int) -> tuple[int, int]:
    """The part of a body that is to be searched when so much at its ends is known."""
    margin = max(_MARGIN, longest)
    quote = body.find(b'"', min(len(body), len(body) - suffix + margin))
    return _from(body, prefix, margin), len(body) if quote < 0 else quote + 1


def _from(body: bytes, prefix: int, margin: int) -> int:
    """From where a body is to be searched when so much at its begin is known."""
    if prefix <= margin:
        return 0
    start = prefix - margin
    start = max(body.rfind(b'"', 0, start), body.rfind(b" ", 0, start)) - _NAME
    return max(0, start)


def _unpacked(body: bytes, headers: Headers) -> bytes | None:
    """What a compressed body says; None for one that is not compressed."""
    if body[:1] in _PLAIN or header(headers, "content-encoding") is None:
        return None
    plain = decode_body(body, headers)
    return None if plain == body or not plain else plain


def _joined(body: bytes) -> list[tuple[bytes, list[tuple[int, int]]]]:
    """What a stream says bit by bit, put together, each with the places of its bits."""
    bits: dict[bytes, list[tuple[int, int]]] = {}
    for found in _FRAGMENT.finditer(body):
        if found.start(2) < found.end(2):
            bits.setdefault(found[1], []).append(found.span(2))
    return [(b"".join([body[a:b] for a, b in places]), places) for places in bits.values() if len(places) > 1]


def _across(spans: Iterable[Span], pieces: list[tuple[int, int]]) -> list[Span]:
    """Places in a joined text as places in the stream, of those that lie in more than one piece."""
    found: list[Span] = []
    for start, end, stands in spans:
        at, parts = 0, list[tuple[int, int]]()
        for first, last in pieces:
            over = at + last - first
            if at < end and over > start:
                parts.append((first + max(0, start - at), last - max(0, over - end)))
            at = over
        if len(parts) > 1:
            found += [(a, b, b"" if number else stands) for number, (a, b) in enumerate(parts)]
    return found


def _cut(body: bytes, chunks: list[bytes], spans: list[Span]) -> list[bytes]:
    """The cleaned body, cut where the original was; a cut within a secret moves to its end."""
    cuts, at, shift, pending = list[int](), 0, 0, iter([*spans, (1 << 62, 1 << 62, b"")])
    span = next(pending)
    for chunk in chunks[:-1]:
        at += len(chunk)
        while span[1] <= at:
            shift += len(span[2]) - (span[1] - span[0])
            span = next(pending)
        inside = span[0] < at
        cuts.append(span[0] + shift + len(span[2]) if inside else at + shift)
    edges = [0, *cuts, len(body)]
    return [body[a:b] for a, b in pairwise(edges)] if chunks else []
