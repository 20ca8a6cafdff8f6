"""The lines of a tape file: exchanges to JSON and back, each sealed to the one before.

A tape is JSON Lines: a header, one line per exchange in the order they ended, a footer. The last member of every line
is `chain`, the SHA-256 of the previous line's chain value followed by the line without that member, so a line that was
changed, moved, left out or added shows at the first line that disagrees. Whoever rewrites every line can seal a forged
tape; the chain tells accidents and edits, it does not name authors (`origin` does).

What earlier lines hold is referred to: bodies as `texts` says; headers, where the names are those of an earlier block,
as `{"as": number, "but": {index: value}}`, blocks being numbered from 0 as they appear; a field whose value is null has
the length of the body that it came with. Lane, wire, method and URL that were together before are `like`, the number of
the first exchange that had them so, among those that said them. A member that has its usual value is left out. Every
body gives back its exact bytes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from itertools import compress, count
from operator import ne
from typing import Any, NamedTuple, cast, get_args

import orjson

from flakestorm.core.call import Headers, track
from flakestorm.core.ledger import Family, Firing
from flakestorm.core.site import Site
from flakestorm.core.volume import holds_more
from flakestorm.tape.members import listed, number, text_of, whole_of
from flakestorm.tape.model import End, Exchange, Recorded
from flakestorm.tape.texts import Ends, Shelf, Text, Texts

__all__ = ["FILE", "START", "Lines", "Read", "open_seal", "seal"]

FILE = 3
"""The number of the form that is written; older ones are read by way of `migrate`."""

START = b""
"""What the first line is chained to."""

_TAIL = len(b',"chain":""}') + 64
_ADDRESS = ("lane", "wire", "method", "url")
_VALUES = 4_000_000  # of one line; a reply that came byte by byte takes two for each of a million
_BLOCKS = 512  # how many header blocks may be referred to
_Fields = tuple[tuple[str, str | None], ...]


def seal(content: Mapping[str, Any], previous: bytes) -> tuple[bytes, bytes]:
    """A line (with its line end) and its chain value."""
    try:
        plain = orjson.dumps(content)
    except TypeError:  # half a surrogate pair in a header or a name; JSON has no spelling for it
        plain = orjson.dumps(_sayable(content))
    chain = hashlib.sha256(previous + plain).hexdigest().encode()
    return b"".join((plain[:-1], b',"chain":"', chain, b'"}\n')), chain


def open_seal(line: bytes, previous: bytes) -> tuple[dict[str, Any], bytes]:
    """A line's content and its chain value; the inverse of `seal`.

    Raises:
        ValueError: the line is not JSON of this form, or its chain value is not the one that belongs here.
    """
    line = line.rstrip(b"\r\n")
    if holds_more(line, _VALUES):
        raise ValueError(f"it holds more than {_VALUES:,} values")
    content = orjson.loads(line)
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    chain = content.pop("chain", None)
    expected = hashlib.sha256(previous + line[:-_TAIL] + b"}").hexdigest()
    if chain != expected:
        raise ValueError("its chain value does not follow from the line before: it, or a line before it, was changed")
    return content, expected.encode()


class _Block(NamedTuple):
    """Headers that were written out, with the size of their body, and which of them says that; -1: none."""

    number: int
    fields: Headers
    size: int
    length_at: int


class Lines:
    """Makes the lines of one file, in their order."""

    def __init__(self) -> None:
        self._texts = Texts()
        self._heads: OrderedDict[str, _Block] = OrderedDict()
        self._blocks = 0
        self._addresses: dict[tuple[str, str, str, str], int] = {}

    def line(self, exchange: Exchange, ends: Ends | None = None) -> tuple[dict[str, Any], Text | None, bytes]:
        """An exchange as a JSON object, its request body in the form that saves memory, and that body's SHA-256.

        Args:
            ends: what its request body is known to have in common with an earlier one.
        """
        site, world, faults = exchange.site, exchange.world, exchange.faults
        place = f"{track(exchange.lane)} {exchange.url}"
        asked = exchange.body
        body, text, said = self._texts.put(place, asked, grows=True, ends=ends)
        line: dict[str, Any] = {"n": exchange.n, "site": str(site)}
        address = exchange.lane, exchange.wire, exchange.method, exchange.url
        if (like := self._addresses.get(address)) is not None:
            line["like"] = like
        else:
            line.update((name, value) for name, value in zip(_ADDRESS, address, strict=True) if value)
            if len(self._addresses) < _BLOCKS:
                self._addresses[address] = len(self._addresses)
        line["headers"], line["body"] = self._headers(f"? {place}", exchange.headers, asked), body
        line["reply"] = self._recorded(exchange.reply, exchange.url)
        if world is not None:
            line["world"] = self._recorded(world, exchange.url)
        if exchange.world_body is not None:
            line["world_body"] = self._texts.put(f"w {place}", exchange.world_body, grows=True)[0]
        if exchange.sent != 1:
            line["sent"] = exchange.sent
        if faults:
            line["faults"] = [_fired(firing, site) for firing in faults]
        line["t_ms"], line["duration_ms"] = exchange.t_ms, exchange.duration_ms
        if exchange.note:
            line["note"] = exchange.note
        return line, text, said

    def kept(self, exchange: Exchange, ends: Ends | None = None) -> tuple[Text | None, bytes]:
        """As `line`, where no file is written."""
        return self._texts.put(f"{track(exchange.lane)} {exchange.url}", exchange.body, grows=True, ends=ends)[1:]

    def _recorded(self, reply: Recorded, url: str) -> dict[str, Any]:
        body = reply.body
        line: dict[str, Any] = {"status": reply.status, "headers": self._headers(f"! {url}", reply.headers, body)}
        if reply.reason and reply.reason != "OK":
            line["reason"] = reply.reason
        elif not reply.reason and reply.status == 200:
            line["reason"] = ""
        if reply.stream:
            line["stream"] = True
        chunks = reply.chunks
        line["body"] = self._texts.put(f"! {url}", body, reply=True)[0]
        if len(chunks) != 1:
            line["sizes"] = [len(chunk) for chunk in chunks]
        line["at_ms"] = reply.at_ms
        if reply.end != "eof":
            line["end"] = reply.end
        if reply.error is not None:
            line["error"] = reply.error
        return line

    def _headers(self, place: str, fields: Headers, body: bytes) -> Any:
        last = self._heads.get(place)
        if last is not None and last.number > self._blocks - _BLOCKS:
            before, size = last.fields, len(body)
            if fields == before and size == last.size:
                return {"as": last.number}
            if len(fields) == len(before):
                other = {at: fields[at][1] for at in compress(count(), map(ne, fields, before))}
                if all(fields[at][0] == before[at][0] for at in other):
                    if last.length_at >= 0 and size != last.size:
                        if fields[last.length_at][1] == str(size):
                            del other[last.length_at]
                        else:
                            other[last.length_at] = fields[last.length_at][1]
                    if not other:
                        return {"as": last.number}
                    if len(other) < len(fields):
                        return {"as": last.number, "but": {str(at): value for at, value in other.items()}}
        if not fields:
            return fields
        told: _Fields = fields
        length_at, length = -1, str(len(body))
        for at, (name, value) in enumerate(fields):
            if value == length and name.lower() == "content-length":
                told, length_at = (*fields[:at], (name, None), *fields[at + 1 :]), at
                break
        self._heads[place] = _Block(self._blocks, fields, len(body), length_at)
        self._heads.move_to_end(place)
        if len(self._heads) > _BLOCKS:
            self._heads.popitem(last=False)
        self._blocks += 1
        return told


class Read:
    """Reads the lines of one file, asked in their order; the inverse of `Lines`. Unknown members are ignored."""

    def __init__(self) -> None:
        self._shelf = Shelf()
        self._blocks: OrderedDict[int, _Fields] = OrderedDict()
        self._count = 0
        self._addresses: list[tuple[str, ...]] = []

    def exchange(self, line: Mapping[str, Any]) -> Exchange:
        """The exchange of a line.

        Raises:
            ValueError: a member is missing or not of its type; the message names it.
        """
        site = Site.parse(text_of(line, "site"))
        lane, wire, method, url = self._address(line)
        body: Any = self._shelf.get(line.get("body"))
        headers = self._headers(line, body)
        reply = self._reply(line.get("reply"))
        world = line.get("world")
        heard = None if world is None else self._reply(world)
        world_body: Any = None if line.get("world_body") is None else self._shelf.get(line["world_body"])
        return Exchange(
            site,
            lane=lane,
            wire=wire,
            method=method,
            url=url,
            headers=headers,
            body=body,
            reply=reply,
            world=heard,
            world_body=world_body,
            sent=whole_of(line, "sent", 1),
            faults=tuple(_firing(site, fault) for fault in listed(line, "faults", [])),
            t_ms=number(line.get("t_ms")),
            duration_ms=number(line.get("duration_ms")),
            n=whole_of(line, "n"),
            note=text_of(line, "note", ""),
        )

    def _address(self, line: Mapping[str, Any]) -> tuple[str, ...]:
        if "like" in line:
            if (number := whole_of(line, "like")) >= len(self._addresses):
                raise ValueError(f"'like' names address {number}, which is not there")
            return self._addresses[number]
        address = tuple(text_of(line, name, "") for name in _ADDRESS)
        if len(self._addresses) < _BLOCKS:
            self._addresses.append(address)
        return address

    def _reply(self, line: Any) -> Recorded:
        if not isinstance(line, dict):
            raise ValueError("'reply' and 'world' must be objects")
        end, error, status = text_of(line, "end", "eof"), line.get("error"), whole_of(line, "status")
        if end not in get_args(End) or not (error is None or isinstance(error, str)):
            raise ValueError(f"'end' and 'error' cannot be {end!r} and {error!r}")
        body = self._shelf.get(line.get("body"))
        headers = self._headers(line, body)
        return Recorded(
            status=status,
            headers=headers,
            reason=text_of(line, "reason", "OK" if status == 200 else ""),
            chunks=_chunks(body.data() if isinstance(body, Text) else body, line),
            at_ms=[number(at) for at in listed(line, "at_ms")],
            stream=line.get("stream") is True,
            end=cast(End, end),
            error=error,
        )

    def _headers(self, line: Mapping[str, Any], body: Text | bytes) -> Headers:
        length = body.length if isinstance(body, Text) else len(body)
        value = line.get("headers")
        if isinstance(value, dict):
            number, but = value.get("as"), value.get("but", {})
            block = self._blocks.get(number) if isinstance(number, int) else None
            if block is None or not isinstance(but, dict):
                raise ValueError(f"'headers' are those of block {number!r}, which is not there")
            fields = list(block)
            for at, new in but.items():
                if not (at.isdecimal() and int(at) < len(fields) and isinstance(new, str)):
                    raise ValueError(f"'headers' change a field {at!r} that is not there")
                fields[int(at)] = fields[int(at)][0], new
            return _with_length(tuple(fields), length)
        pairs = [tuple(pair) if isinstance(pair, list) else () for pair in listed(line, "headers")]
        if not all(len(p) == 2 and isinstance(p[0], str) and (p[1] is None or isinstance(p[1], str)) for p in pairs):
            raise ValueError("'headers' must be pairs of strings")
        told = cast(_Fields, tuple(pairs))
        if told:
            self._blocks[self._count] = told
            self._count += 1
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        return _with_length(told, length)


def _with_length(fields: _Fields, length: int) -> Headers:
    return tuple([(name, str(length) if value is None else value) for name, value in fields])


def _chunks(body: bytes, line: Mapping[str, Any]) -> list[bytes]:
    if "sizes" not in line:
        return [body]
    chunks, at = [], 0
    for size in listed(line, "sizes"):
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ValueError("'sizes' must hold whole numbers")
        chunks.append(body[at : at + size])
        at += size
    if at != len(body):
        raise ValueError(f"'sizes' add up to {at} bytes, and the body has {len(body)}")
    return chunks


def _sayable(value: Any) -> Any:
    """The same with `?` for characters that UTF-8 cannot say."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {str(name): _sayable(part) for name, part in value.items()}
    return [_sayable(part) for part in value] if isinstance(value, (list, tuple)) else value


def _fired(firing: Firing, here: Site) -> dict[str, Any]:
    line = {"mode": firing.mode, "family": firing.family, "detail": firing.detail, "fault": firing.fault}
    return line if firing.site == here else {**line, "site": str(firing.site)}


def _firing(here: Site, line: Any) -> Firing:
    if not isinstance(line, dict):
        raise ValueError("'faults' must hold objects")
    family = text_of(line, "family")
    if family not in get_args(Family):
        raise ValueError(f"'family' cannot be {family!r}")
    site, via = (Site.parse(text_of(line, "site")), here) if "site" in line else (here, None)
    return Firing(
        site, text_of(line, "mode"), cast(Family, family), text_of(line, "detail"), whole_of(line, "fault"), via
    )
