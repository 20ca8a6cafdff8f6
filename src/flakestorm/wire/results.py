"""Tool results on their way to the model, in any dialect: found in a request, told apart, and rewritten in place.

A tool that is a plain function inside an agent crosses no boundary. Its result does: the next model request carries it,
and so does every later one, because agents send the whole conversation again. So a result has an identity that later
requests share (`Result.key`), and rewriting one leaves every other byte of the request as it came.

What differs between protocols is said by a `Dialect`: where results stand, and how one is spelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from flakestorm.wire.shape import Doc, objects, parse
from flakestorm.wire.splice import Path, with_members

__all__ = ["Dialect", "Found", "Key", "Reading", "Result", "Told", "one_text", "results", "rewritten"]

Key = tuple[str, str, str, int]
"""What tells results apart within a run: see `results`."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a result tells the model.

    Args:
        text: what the tool said. Images and files are not part of it.
        failed: whether the result is marked as a failure; protocols without such a mark say so in the text.
    """

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A result as a dialect found it.

    Args:
        call_id: the id of the tool call it answers; empty where the protocol has none.
        name: the tool's name as far as this request says; empty where it does not.
        told: what it tells.
        path: where the object stands whose members spell the result.
        entry: that object.
        asked: the arguments the tool was called with, where the request shows them; they help to tell results apart
            that have no id.
        resumed: whether the provider keeps the conversation before this request, so that only new results are in it.
    """

    call_id: str
    name: str
    told: Told
    path: Path
    entry: Doc = field(repr=False)
    asked: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A result in a request, named and told apart from all others.

    Args:
        key: equal for the same result in every request of a run.
        call_id, name, told, path: as in `Found`; the name is never empty.
        entry: as in `Found`.
    """

    key: Key
    call_id: str
    name: str
    told: Told
    path: Path = field(compare=False)
    entry: Doc = field(repr=False, compare=False)


class Reading(Protocol):
    """How the results in one protocol's requests are found."""

    def holds(self, body: bytes, /) -> bool:
        """Whether a request may hold results. Most do not, and need not be read; JSON is taken to escape no letter."""
        ...

    def find(self, doc: Doc, /) -> Sequence[Found]:
        """The results of tools that the agent runs, in conversation order; what does not fit is passed over."""
        ...


class Dialect(Reading, Protocol):
    """What one protocol says about results. Fulfilled by the modules `*results` of this room."""

    def spell(self, entry: Doc, told: Told, /) -> Mapping[str, object]:
        """The members of `entry` that make it tell this instead, in the shape that it has already."""
        ...


def results(dialect: Reading, body: bytes, *, name_of: Callable[[str], str], unnamed: str) -> tuple[Result, ...]:
    """The results in a request, in conversation order; none if the body is not understood.

    A result is the same as one in an earlier request when it answers the same call id for the same tool. Ids that come
    again within one request (scripted and small models number their calls anew each time) are told apart by their
    order. Where the order says nothing, because there is no id or the provider keeps the conversation, tool, arguments
    and text tell results apart, and equal ones their order.

    Args:
        dialect: the request's.
        body: the request body.
        name_of: the name of a tool by its call id, for results whose request does not show the call; empty if unknown.
        unnamed: what a tool is called whose name nobody knows.
    """
    doc = parse(body)
    try:
        standing = () if doc is None else dialect.find(doc)
    except RecursionError:  # arguments nested so deep that they can be read but not written again
        standing = ()
    seen: Counter[tuple[str, str, str]] = Counter()
    found: list[Result] = []
    for result in standing:
        name = result.name or name_of(result.call_id) or unnamed
        by_content = result.resumed or not result.call_id
        identity = result.call_id, name, _digest(result) if by_content else ""
        seen[identity] += 1
        found.append(Result((*identity, seen[identity]), result.call_id, name, result.told, result.path, result.entry))
    return tuple(found)


def rewritten(dialect: Dialect, body: bytes, changes: Iterable[tuple[Result, Told]]) -> bytes:
    """The request with these results telling something else; every other byte as it was.

    Args:
        dialect: the request's.
        body: the body that `results` found them in.
        changes: what each result is to tell.
    """
    return with_members(body, {result.path: dialect.spell(result.entry, told) for result, told in changes})


def one_text(content: object, text: str, kind: str) -> object:
    """This text in the shape of a content: a string, or a list of one text part.

    The part keeps what else the first text part said (a mark for the provider's cache, say). No text is a string in any
    case, because providers refuse empty parts.
    """
    if not text or not isinstance(content, list):
        return text
    first = next((part for part in objects(content) if part.get("type") == kind), {"type": kind})
    return [{**first, "text": text}]


def _digest(found: Found) -> str:
    state = blake2b(digest_size=16)
    for word in (found.asked, found.told.text, str(found.told.failed)):
        data = word.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()
