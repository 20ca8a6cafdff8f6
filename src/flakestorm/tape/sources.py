"""Where two runs that should be the same are not, and what probably made them differ.

The runs are compared site by site. What differs is narrowed down to the smallest pieces of the two requests, and the
look of those (a uuid, a time, a temporary path) names the source. It is a guess, and is called likely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

import orjson

from flakestorm.core.call import Headers
from flakestorm.tape.model import Exchange
from flakestorm.wire.encoding import decode_body

__all__ = ["OUTPUT", "Difference", "Source", "compare", "source_of"]

Source = Literal["clock", "uuid", "random", "hash seed", "concurrency", "temp path", "pid", "port", "unknown"]

OUTPUT = "output"
"""What stands for a site where the agent's output differs."""

_SILENT = re.compile(
    r"(?i)date|authorization|.*api-?key|cookie|content-length|user-agent|connection|accept-encoding|host|traceparent"
    r"|tracestate|x-stainless-.*|x-flakestorm-.*|.*request-id"
)
_HEX = "[0-9a-fA-F]"
_UUID = re.compile(rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}|\b{_HEX}{{32}}\b")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?|\b\d\d:\d\d(:\d\d(\.\d+)?)?\b"
    r"|\b1[5-9]\d{8}(\d{3}|\d{6}|\d{9})?(\.\d+)?\b"
    r"|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
)
_TEMP = re.compile(r"(/tmp|/var/folders|/var/tmp|\\Temp)[/\\][^\s\"']*")
_PORT = re.compile(r"(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0):\d{2,5}|\bport\b", re.IGNORECASE)
_PID = re.compile(r"\b(pid|process)\b|_pid\b|\bpid_", re.IGNORECASE)
_ADDRESS = re.compile(rf"\b0x{_HEX}{{6,16}}\b")
_TOKEN = re.compile(rf"\b(?=[\w-]*\d){_HEX}{{6,}}\b|\b\d+\.\d{{6,}}|\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{{12,}}")
_LOOKS: tuple[tuple[Source, re.Pattern[str]], ...] = (
    ("uuid", _UUID),
    ("temp path", _TEMP),
    ("port", _PORT),
    ("clock", _TIME),
)
_WORDS = re.compile(r"\w+|\S")
_AROUND = 40
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs differ at a site.

    Args:
        site: the address, or `output`.
        where: the part of the request: `method`, `url`, a header, a path in the body such as `messages[2].content`;
            `missing` or `extra` where only one run has the site.
        recorded, replayed: what stands there, shortened.
        source: what probably made it differ.
    """

    site: str
    where: str
    recorded: str
    replayed: str
    source: Source


def compare(
    recorded: Sequence[Exchange], replayed: Sequence[Exchange], outputs: tuple[str, str] = ("", "")
) -> list[Difference]:
    """What differs between two runs, in the recorded order.

    Args:
        recorded, replayed: their exchanges.
        outputs: what the agent said in each.
    """
    before, after = _by_site(recorded), _by_site(replayed)
    swapped = {site for site in before if site in after and _swapped(site, before, after)}
    found: list[Difference] = []
    for site, exchange in before.items():
        other = after.get(site)
        if other is None:
            found.append(Difference(site, "missing", _short(exchange.url), "", "unknown"))
            continue
        parts = list(_parts(exchange, other))
        if parts and site in swapped:
            where, one, two = parts[0]
            found.append(Difference(site, where, *_cut(one, two), "concurrency"))
            continue
        found += [Difference(site, where, *_cut(one, two), source_of(one, two, where)) for where, one, two in parts]
    found += [
        Difference(site, "extra", "", _short(exchange.url), "unknown")
        for site, exchange in after.items()
        if site not in before
    ]
    if outputs[0] != outputs[1]:
        found += [
            Difference(OUTPUT, where, *_cut(one, two), source_of(one, two, where))
            for where, one, two in _leaves(_value(outputs[0].encode()), _value(outputs[1].encode()), "")
        ]
    return found


def source_of(one: str, two: str, where: str = "") -> Source:
    """What probably made these two texts differ.

    Args:
        one, two: the texts.
        where: the name of the field they stand in.
    """
    if sorted(_WORDS.findall(one[:_LONGEST])) == sorted(_WORDS.findall(two[:_LONGEST])):
        return "hash seed"
    kinds = {_kind(*pieces, where) for pieces in _pieces(one, two)}
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _kind(before: tuple[str, str, str], after: tuple[str, str, str], where: str) -> Source:
    """Of one differing piece, given in each text as what stands before it, itself, and what stands after it."""
    (left, one, right), (_, two, right_two) = before, after
    wide, wide_two = f"{left}{one}{right}", f"{left}{two}{right_two}"
    begin, end = len(left), len(left) + len(one)
    end_two = begin + len(two)
    for source, pattern in _LOOKS:
        if _covers(pattern, wide, begin, end) and _covers(pattern, wide_two, begin, end_two):
            return source
    if one.strip().isdecimal() and two.strip().isdecimal() and (_PID.search(where) or _PID.search(left[-20:])):
        return "pid"
    if one.strip().isdecimal() and re.search("port", where, re.IGNORECASE):
        return "port"
    if _covers(_TOKEN, wide, begin, end) or _covers(_ADDRESS, wide, begin, end):
        return "random"
    return "unknown"


def _covers(pattern: re.Pattern[str], text: str, begin: int, end: int) -> bool:
    """Whether a match reaches over this stretch."""
    return any(found.start() <= begin and end <= found.end() for found in pattern.finditer(text))


def _pieces(one: str, two: str) -> Iterator[tuple[tuple[str, str, str], tuple[str, str, str]]]:
    """The stretches in which two texts differ, each with what stands around it."""
    one, two = one[:_LONGEST], two[:_LONGEST]
    first, second = re.findall(r"[\w.:/\\-]+|.", one, re.DOTALL), re.findall(r"[\w.:/\\-]+|.", two, re.DOTALL)
    for tag, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        gone, come = "".join(first[a:b]), "".join(second[c:d])
        head = _shared(gone, come)
        tail = _shared(gone[head:][::-1], come[head:][::-1])
        left = ("".join(first[:a]) + gone[:head])[-_AROUND:]
        right = (gone[len(gone) - tail :] + "".join(first[b:]))[:_AROUND]
        yield (left, gone[head : len(gone) - tail], right), (left, come[head : len(come) - tail], right)


def _shared(one: str, two: str) -> int:
    """How many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _by_site(exchanges: Iterable[Exchange]) -> dict[str, Exchange]:
    return {str(exchange.site): exchange for exchange in exchanges}


def _swapped(site: str, before: Mapping[str, Exchange], after: Mapping[str, Exchange]) -> bool:
    """Whether the other run made this very request, but as another occurrence of the same call."""
    wanted = before[site]
    if _same(wanted, after[site]):
        return False
    return any(
        exchange.site[:2] == wanted.site[:2] and _same(wanted, exchange)
        for other, exchange in after.items()
        if other != site
    )


def _same(one: Exchange, two: Exchange) -> bool:
    return next(iter(_parts(one, two)), None) is None


def _parts(one: Exchange, two: Exchange) -> Iterator[tuple[str, str, str]]:
    """Name and both forms of each part in which two requests differ."""
    if one.method != two.method:
        yield "method", one.method, two.method
    if one.url != two.url:
        yield "url", one.url, two.url
    heads, others = _headers(one.headers), _headers(two.headers)
    for name in sorted(heads.keys() | others.keys()):
        if heads.get(name) != others.get(name):
            yield f"header {name}", heads.get(name, ""), others.get(name, "")
    if one.body != two.body:
        yield from _leaves(_value(decode_body(one.body, one.headers)), _value(decode_body(two.body, two.headers)), "")


def _headers(headers: Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers if not _SILENT.fullmatch(name)}


def _value(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")


def _leaves(one: Any, two: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """The smallest parts in which two values differ. The order of members says nothing; that of items does."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        for name in one:
            yield from _leaves(one[name], two[name], f"{path}.{name}" if path else name)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two) and not _permuted(one, two):
        for n, (left, right) in enumerate(zip(one, two, strict=True)):
            yield from _leaves(left, right, f"{path}[{n}]")
    elif type(one) is not type(two) or one != two:
        yield path or "body", _text(one), _text(two)


def _permuted(one: list[Any], two: list[Any]) -> bool:
    return one != two and sorted(map(_text, one)) == sorted(map(_text, two))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _cut(one: str, two: str) -> tuple[str, str]:
    """Both texts around the first place in which they differ."""
    start = max(0, _shared(one, two) - _AROUND)
    dots = "..." if start else ""
    return dots + _short(one[start:]), dots + _short(two[start:])


def _short(text: str) -> str:
    return text if len(text) <= 3 * _AROUND else f"{text[: 3 * _AROUND]}..."
