"""One more sentence inside a result that stays valid: JSON keeps its shape, an MCP result the form it has promised.

A text is added at the end of one string that is there already. Prose takes any text; a date, an address or an id does
not, and a short word may be one of a list. So the longest string that reads as prose is taken, else the longest that
follows no known format. Where there is none, an object gets a member more, which schemas allow unless they say
otherwise; in anything else nothing can be hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from flakestorm.wire.mcp.schema import filled
from flakestorm.wire.shape import Doc, dump, objects, string
from flakestorm.wire.splice import Path, span, spliced, with_members

__all__ = ["hidden", "hidden_in_mcp", "hidden_in_text"]

_FORMATTED = re.compile(
    r"""
      [\d\s.,:;+\-/%TZ]+                                 # numbers, dates, times
    | \d{4}-\d\d-\d\d.*                                  # ISO 8601
    | [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}
    | [a-zA-Z][a-zA-Z0-9+.\-]*:(?://)?\S+                # addresses, data, names
    | \S+@\S+\.\S+
    | [A-Za-z0-9+/_=\-]{24,}                             # encoded bytes, keys, digests
    """,
    re.VERBOSE,
)
_DIRECTLY = "\n"
_BLOCKS = ("content", "contents")


def hidden(document: bytes, text: str) -> bytes:
    """The JSON document with the text at the end of one of its strings, or, in an object without one that takes it, as
    its member `note`.

    Every other byte stays as it is. What is not JSON, a list without such a string, and one bare value that is no
    string are left alone.
    """
    value = _loads(document)
    path = _place(value)
    if path is None:
        return (
            with_members(document, {(): {"note": text}})
            if isinstance(value, dict) and "note" not in value
            else document
        )
    start, end = span(document, path)
    return spliced(document, [(start, end, dump(_longer(_at(value, path), text)))])


def hidden_in_text(said: str, text: str) -> str:
    """What a tool said, with the text in it: as `hidden` where that is JSON, else at its end; unchanged where it said
    nothing."""
    data = said.encode("utf-8", "surrogatepass")
    if isinstance(_loads(data), dict | list | str):
        return hidden(data, text).decode("utf-8", "surrogatepass")
    return f"{said}\n\n{text}" if said.strip() else said


def hidden_in_mcp(result: Doc, text: str, schema: Doc | None) -> Doc:
    """The result of an MCP request with the text in it, where the model will read it.

    The text goes to the end of the longest block of text. Structured content gets it too, in a string that the tool's
    output schema leaves free; a block that is the structured content as JSON stays that. Where no block has text, and
    where structured content has no free string to keep pace with its block, the text is a block of its own. A failure
    is left alone, and so is a result that has no list of blocks.

    Args:
        result: the `result` member of an answer: of a tool, a resource or a prompt.
        text: what is hidden.
        schema: the output schema of the tool; None where none is known.

    Returns:
        The changed result, or the very same object where nothing was hidden.
    """
    if result.get("isError") is True or result.get("resultType") == "input_required":
        return result
    changed: Doc = orjson.loads(dump(result))
    block = max(_texts(changed), key=lambda found: len(found["text"]), default=None)
    structured = changed.get("structuredContent")
    if structured is None:
        if block is not None:
            block["text"] = _longer(block["text"], text)
            return changed
        return _with_block(changed, result, text)
    mirror = None if block is None else _mirrored(structured, block["text"])
    path = _free(structured, text, schema)
    if path is not None:
        _put(structured, path, _longer(_at(structured, path), text))
    if block is not None and mirror is not None and path is not None:
        block["text"] = dump(_at(structured, mirror)).decode()
    elif block is not None and mirror is None:
        block["text"] = _longer(block["text"], text)
    else:
        return _with_block(changed, result, text)
    return changed


def _mirrored(structured: Any, text: str) -> Path | None:
    """Which part of structured content a text is the JSON of: all of it, or the one value that SDKs wrap; else None."""
    said = _loads(text.encode("utf-8", "surrogatepass"))
    wrapped: Path = ("result",) if isinstance(structured, dict) and list(structured) == ["result"] else ()
    return next((path for path in ((), wrapped) if said is not None and said == _at(structured, path)), None)


def _with_block(changed: Doc, result: Doc, text: str) -> Doc:
    if not isinstance(changed.get("content"), list):
        return result
    changed["content"].append({"type": "text", "text": text})
    return changed


def _texts(result: Doc) -> Iterator[Doc]:
    """The blocks of text in a result: of a tool, of a resource, of a prompt."""
    blocks = [block for key in _BLOCKS for block in objects(result.get(key))]
    blocks += objects([message.get("content") for message in objects(result.get("messages"))])
    yield from (block for block in blocks if string(block.get("text")))


def _free(value: Any, text: str, schema: Doc | None) -> Path | None:
    """Where in structured content the schema lets the text in."""
    if schema is None:
        return _place(value)
    free = [p for p, said in _strings(value) if _at(filled(value, _longer(said, text), schema), p) != said]
    return _place(value, among=free)


def _place(value: Any, *, among: list[Path] | None = None) -> Path | None:
    """The path of the string that takes a text best."""
    candidates = [
        (" " in said.strip(), len(said), path)
        for path, said in _strings(value)
        if said.strip() and not _FORMATTED.fullmatch(said) and (among is None or path in among)
    ]
    return max(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None


def _strings(value: Any) -> Iterator[tuple[Path, str]]:
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, found = waiting.pop()
        if isinstance(found, str):
            yield path, found
        elif isinstance(found, dict):
            waiting += [((*path, key), inner) for key, inner in reversed(found.items())]
        elif isinstance(found, list):
            waiting += [((*path, index), found[index]) for index in reversed(range(len(found)))]


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _put(value: Any, path: Path, new: str) -> None:
    _at(value, path[:-1])[path[-1]] = new


def _longer(said: str, text: str) -> str:
    return f"{said}{_DIRECTLY}{text}"


def _loads(document: bytes) -> Any:
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        return None
