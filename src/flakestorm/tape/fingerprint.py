"""What a request is told apart by: four fingerprints, from the letter to the gist.

raw        the bytes of method, URL and body
canonical  members sorted, numbers normalised, headers that say nothing about the request left out
renamed    the same, each volatile token replaced by its kind and its number, in order of first appearance
skeleton   where it goes, who speaks in it, which tools it names, and what was said last

An agent's n-th request repeats the n-1 messages before it, so a body is read in parts (the members of the document, and
the items of its lists) and what is known about a part is kept by its bytes: the work is proportional to new text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec

from flakestorm.core.call import Headers, Repeats, header
from flakestorm.core.canon import parse, spell
from flakestorm.tape.heads import credential, says_something, says_the_same
from flakestorm.tape.model import Exchange
from flakestorm.tape.tokens import RPC, Token, Tokens
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.growing import LONG, Growing

__all__ = ["Asked", "Fingerprints", "Part", "Request", "Requests", "fingerprints"]

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])

_SECRET = re.compile(r"\[secret:[0-9a-f]{8}\]|%5Bsecret(?::|%3A)[0-9a-f]{8}%5D", re.IGNORECASE)
_FIELDS = 4096  # header fields that are remembered
_LISTS = 16  # how many are remembered, to go on from; an agent has few conversations at a time


class Request(NamedTuple):
    """What is asked, as a tape tells it: secrets are out already."""

    kind: str
    name: str
    method: str
    url: str
    headers: Headers
    body: bytes

    @classmethod
    def of(cls, exchange: Exchange) -> Request:
        """The request of a recorded exchange."""
        return cls(exchange.kind, exchange.name, exchange.method, exchange.url, exchange.headers, exchange.body)


class Part:
    """One part of a body: what it says and what is volatile in it. Shared by all requests that repeat it."""

    __slots__ = ("canonical", "raw", "renamed", "tokens")

    def __init__(self, raw: bytes, canonical: bytes, renamed: bytes, tokens: tuple[Token, ...]) -> None:
        self.raw, self.canonical, self.renamed, self.tokens = raw, canonical, renamed, tokens


class Group(tuple[Part, ...]):
    """The parts of one member of a body, with what they come to: digests, and tokens in order. One that goes on from
    another costs what it adds."""

    canonical: blake2b
    renamed: blake2b
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, parts: Iterable[Part], before: Group | None = None) -> Group:
        """These parts, after those before them."""
        new = tuple(parts)
        group = cls(new if before is None else (*before, *new))
        group.canonical = blake2b(digest_size=16) if before is None else before.canonical.copy()
        group.renamed = blake2b(digest_size=16) if before is None else before.renamed.copy()
        for part in new:
            group.canonical.update(part.canonical)
            group.renamed.update(part.renamed)
        tokens = tuple([token for part in new if part.tokens for token in part.tokens])
        group.tokens = tokens if before is None else (*before.tokens, *tokens)
        return group


class Fingerprints(NamedTuple):
    """The four fingerprints of one request; see the module's docstring."""

    raw: bytes
    canonical: bytes
    renamed: bytes
    skeleton: bytes


class Asked:
    """A request, read.

    Args:
        hard: what must be equal in every mode: method, address, credential, and kind and name (a model's is its name).
        canonical, renamed: fingerprints.
        head: the volatile tokens of address and headers, in order; those of the body are its parts'.
        parts: the body's, by the name of the member they stand in; one of an empty name where it is no JSON object.
        headers: those that say something, sorted.
    """

    __slots__ = ("canonical", "hard", "head", "headers", "parts", "renamed")

    def __init__(
        self,
        hard: tuple[str, ...],
        headers: tuple[tuple[str, str], ...],
        parts: tuple[tuple[str, Group], ...],
        head: Part,
    ) -> None:
        self.hard, self.headers, self.parts, self.head = hard, headers, parts, head.tokens
        shape = "\0".join([f"{name}:{len(group)}" for name, group in parts]).encode("utf-8", "surrogatepass")
        tokens = [*head.tokens, *(token for _, group in parts for token in group.tokens)]
        canonical = [group.canonical.digest() for _, group in parts]
        self.canonical = _digest(head.canonical, shape, *canonical)
        renamed = [group.renamed.digest() for _, group in parts]
        self.renamed = _digest(head.renamed, shape, *renamed, *_numbered(tokens))

    @property
    def skeleton(self) -> bytes:
        """Where it goes, who speaks, which tools are called, and the last thing said."""
        said: list[bytes] = []
        for name, group in self.parts:
            if len(group) > 1 or name in ("messages[]", "input[]", "contents[]", "input", "prompt"):
                said += (name.encode("utf-8", "surrogatepass"), b"/".join(_role(part.raw) for part in group))
                said.append(group[-1].renamed if group else b"")
        family = re.sub(r"[-@:]\d.*", "", self.hard[1])
        return _digest(self.hard[0].encode(), family.encode("utf-8", "surrogatepass"), *said)

    def document(self) -> object:
        """The body as a value, for telling differences; bytes of other forms as text."""
        found: dict[str, object] = {}
        for name, group in self.parts:
            values = [_value(part.raw) for part in group]
            if not name:
                return values[0] if values else None
            found[name.removesuffix("[]")] = values if name.endswith("[]") else values[0]
        return found


class Requests:
    """Reads requests, keeping what it knows of their parts.

    Args:
        tokens: finds what is volatile.
    """

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens or Tokens()
        self._parts: dict[tuple[str, bytes], Part] = {}
        self._lists: deque[tuple[str, bytes, Group]] = deque(maxlen=_LISTS)
        self._fields: dict[tuple[str, str], tuple[str, list[Token]]] = {}
        self._growing: deque[tuple[Growing, int, tuple[tuple[str, Group], ...]]] = deque(maxlen=_LISTS)
        self._groups: dict[tuple[str, bytes, bytes, int], Group] = {}
        self._last: tuple[Request, tuple[tuple[str, ...], tuple[tuple[str, str], ...], Part]] | None = None

    def read(self, request: Request, repeats: Repeats | None = None) -> Asked:
        """What a request says.

        Args:
            repeats: what its body is known to have in common with an earlier one.
        """
        hard, fields, head = self._head(request)
        return Asked(hard, fields, self._body(request, repeats), head)

    def _head(self, request: Request) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], Part]:
        """What must be equal, the header fields that say something, and all of the head; most often it is as it was in
        the request before."""
        if self._last is not None:
            before, known = self._last
            if before[:4] == request[:4] and says_the_same(request.headers, before.headers):
                return known
        found: list[Token] = []
        url = request.url.partition("#")[0]
        path, _, query = url.partition("?")
        shown = self._tokens.text(path, found)
        pairs = [f"{key}={self._tokens.text(value, found, key)}" for key, value in parse_qsl(query, True)]
        fields = says_something(request.headers)
        lines = [self._line(field, found) for field in fields]
        who = " ".join((credential(request.headers), *_SECRET.findall(query))).strip()
        hard = (request.kind, request.name, request.method, shown, who)
        renamed = "\n".join((*hard, "&".join(pairs), *lines))
        canonical = "\n".join((*hard[:3], path, who, query, *(f"{k}: {v}" for k, v in fields)))
        head = Part(b"", _hash(canonical), _hash(renamed), tuple(found))
        self._last = request._replace(body=b""), (hard, fields, head)
        return hard, fields, head

    def _line(self, field: tuple[str, str], found: list[Token]) -> str:
        """A header's line, its tokens marked; most are those of the request before."""
        known = self._fields.get(field)
        if known is None:
            tokens: list[Token] = []
            known = f"{field[0]}: {self._tokens.text(field[1], tokens, field[0])}", tokens
            if len(self._fields) < _FIELDS:
                self._fields[field] = known
        found += known[1]
        return known[0]

    def _body(self, request: Request, repeats: Repeats | None) -> tuple[tuple[str, Group], ...]:
        body = decode_body(request.body, request.headers)
        kind = (header(request.headers, "content-type") or "").partition(";")[0].strip().lower()
        if kind == "multipart/form-data":
            return (("", Group.of(self._part("", piece, False) for piece in _multipart(body, request.headers))),)
        if kind == "application/x-www-form-urlencoded":
            pairs = parse_qsl(body.decode("utf-8", "replace"), True)
            return tuple((name, Group.of([self._part(name, value.encode(), False)])) for name, value in pairs)
        if len(body) >= LONG and (grown := self._grown(body, repeats)) is not None:
            return grown
        try:
            members = _members.decode(body)
        except (ValueError, RecursionError):
            return (("", Group.of([self._part("", body, True)])),) if body else ()
        rpc = "jsonrpc" in members
        found = tuple([self._member(name, members[name], rpc) for name in sorted(members)])
        if len(body) >= LONG:
            names = sorted(members)
            lists = {name: members[name] for name, (kind, _) in zip(names, found, strict=True) if kind != name}
            if (growing := Growing.of(body, members, lists)) is not None:
                self._growing.appendleft((growing, names.index(growing.name), found))
        return found

    def _grown(self, body: bytes, repeats: Repeats | None) -> tuple[tuple[str, Group], ...] | None:
        """What a body says that goes on from an earlier one, of which no item is read again; None if it does not."""
        for at, (growing, where, found) in enumerate(self._growing):
            name, group = growing.name, found[where][1]
            members: dict[str, msgspec.Raw] | None = None
            if (added := growing.added_in(body, repeats)) is None:
                if (members := growing.rest_of(body)) is None:
                    continue
                added = bytes(members[name])
            if new := self._items(name, added):
                group = self._kept(name, Group.of(new, group))
            grown = f"{name}[]", group
            if members is None:
                found = (*found[:where], grown, *found[where + 1 :])
            else:
                rpc, names = "jsonrpc" in members, sorted(members)
                found = tuple([grown if each == name else self._member(each, members[each], rpc) for each in names])
                where = names.index(name)
            del self._growing[at]
            self._growing.appendleft((growing.to(body, added), where, found))
            return found
        return None

    def _kept(self, name: str, group: Group) -> Group:
        """The same group, if there was one that says the same."""
        return self._groups.setdefault((name, group.canonical.digest(), group.renamed.digest(), len(group)), group)

    def _member(self, name: str, value: msgspec.Raw, rpc: bool) -> tuple[str, Group]:
        raw = bytes(value)
        if raw.startswith(b"["):
            try:
                return f"{name}[]", self._list(name, raw)
            except (ValueError, RecursionError):
                pass
        return name, Group.of([self._part(RPC if rpc and name == "id" else name, raw, True)])

    def _list(self, name: str, raw: bytes) -> Group:
        """The items of a list. What an earlier one had already, up to its closing bracket, is not read again."""
        for at, (known, before, group) in enumerate(self._lists):
            if known == name and raw.startswith(before) and raw[len(before) : len(before) + 1] in (b",", b"]"):
                del self._lists[at]
                rest = raw[len(before) + 1 :]
                if raw[len(before) : len(before) + 1] == b",":
                    group = Group.of(self._items(name, b"[" + rest), group)
                break
        else:
            group = Group.of(self._items(name, raw))
        if group:
            self._lists.appendleft((name, raw[:-1].rstrip(), group))
        return self._kept(name, group)

    def _items(self, name: str, raw: bytes) -> list[Part]:
        return [self._part(name, bytes(item), True) for item in _items.decode(raw)]

    def _part(self, name: str, raw: bytes, json: bool) -> Part:
        part = self._parts.get((name, raw))
        if part is None:
            part = self._parts[name, raw] = self._read(name, raw, json)
        return part

    def _read(self, name: str, raw: bytes, json: bool) -> Part:
        found: list[Token] = []
        try:
            value = _opened(parse(raw)) if json else raw.decode()
            renamed = spell(value, self._tokens.leaf(found), name)
            canonical = spell(value) if found else renamed
        except (ValueError, RecursionError):
            found.clear()
            text = raw.decode("utf-8", "surrogateescape")
            canonical, renamed = text, self._tokens.text(text, found, name)
        said = _hash(canonical)
        return Part(raw, said, _hash(renamed) if found else said, tuple(found))


def fingerprints(request: Request, requests: Requests | None = None) -> Fingerprints:
    """The four fingerprints of a request."""
    asked = (requests or Requests()).read(request)
    raw = _digest(request.method.encode(), request.url.encode("utf-8", "replace"), request.body)
    return Fingerprints(raw, asked.canonical, asked.renamed, asked.skeleton)


def _numbered(tokens: Sequence[Token]) -> Iterator[bytes]:
    """The order of first appearance: what is equal has the same number. Times have none: two looks at one clock may
    fall into one second in one run and into two in the other."""
    numbers: dict[str, int] = {}
    yield b",".join(
        [b"-" if t.is_time or t.kind == "rpc" else b"%d" % numbers.setdefault(t.text, len(numbers)) for t in tokens]
    )


def _opened(value: object) -> object:
    """The value with tool arguments, which travel as JSON text, as values: their spelling is the sender's."""
    if isinstance(value, list):
        return [_opened(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _arguments(item) if key == "arguments" else _opened(item) for key, item in value.items()}


def _arguments(value: object) -> object:
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return _opened(value)
    try:
        return {"\0json": parse(value.encode())}
    except (ValueError, UnicodeEncodeError):
        return value


def _multipart(body: bytes, headers: Headers) -> list[bytes]:
    """The pieces of a form, without the boundary between them, which is new each time."""
    found = re.search(r'boundary="?([^";,]+)', header(headers, "content-type") or "")
    if found is None:
        return [body]
    return [piece.strip(b"\r\n") for piece in body.split(b"--" + found[1].encode())][1:-1]


def _role(raw: bytes) -> bytes:
    value = _value(raw)
    if not isinstance(value, dict):
        return b"-"
    words = [str(value.get("role") or value.get("type") or "-")]
    calls = value.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    words += [str(function.get("name")) for function in functions if isinstance(function, dict)]
    return ",".join(words).encode("utf-8", "surrogatepass")


def _value(raw: bytes) -> object:
    try:
        return _opened(parse(raw))
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _digest(*parts: bytes) -> bytes:
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()
