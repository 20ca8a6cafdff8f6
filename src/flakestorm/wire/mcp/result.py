"""The results of MCP servers, taken apart and put together: texts, structured content, and that they say the same.

A tool that has structured content says it a second time as text, for models that read nothing else. Whoever changes one
must change the other, or the agent is told two things at once. Servers differ in how they write the text: the whole
document, what stands in its only field, one block for each element of a list, or a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from flakestorm.wire.shape import Doc, dump, items
from flakestorm.wire.splice import Path, edited

__all__ = ["ABSENT", "read_json", "retold", "texts_of", "with_texts"]

ABSENT = object()
"""What stands for a JSON document that is none, because None is `null`."""

_MOST_PLACES = 500
_Said = Callable[[str], str]


def texts_of(result: Doc) -> list[str]:
    """The texts of a result, in order: of a tool, of a resource, of a prompt."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    with_texts(result, note)
    return found


def with_texts(result: Doc, change: _Said) -> Doc:
    """The result with each of its texts changed, those of embedded resources among them."""

    def said(value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            return value
        return {**value, "text": change(value["text"])}

    def block(value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("resource"), dict):
            return {**value, "resource": said(value["resource"])}
        return said(value)

    changed = dict(result)
    for key in ("content", "contents"):
        if isinstance(result.get(key), list):
            changed[key] = [block(value) for value in result[key]]
    if isinstance(result.get("messages"), list):
        changed["messages"] = [
            {**message, "content": block(message.get("content"))} if isinstance(message, dict) else message
            for message in items(result["messages"])
        ]
    return changed


def read_json(text: str) -> Any:
    """The JSON document a text is; `ABSENT` where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return ABSENT


def retold(text: str, document: Any, *, values: Mapping[Path, Any], without: Collection[Path] = ()) -> str:
    """A text that says a document, or a part of it, changed as the document is.

    Args:
        text: as the server wrote it.
        document: the structured content it goes with.
        values: what is new in the document, by where it stands.
        without: the fields that are gone from it.

    A text that is no part of the document is read as a sentence: old values in it become new ones.
    """
    said = read_json(text)
    for path, part in _parts(document):
        if part == text or (said is not ABSENT and type(said) is type(part) and said == part):
            inner = {place[len(path) :]: value for place, value in values.items() if place[: len(path)] == path}
            if part == text:
                return str(inner.get((), text))
            gone = [place[len(path) :] for place in without if place[: len(path)] == path]
            return edited(text.encode("utf-8", "surrogatepass"), values=inner, without=gone).decode(
                "utf-8", "surrogatepass"
            )
    for place, value in values.items():
        was = _at(document, place)
        if not isinstance(was, bool) and isinstance(was, (str, int, float)) and was != "":
            text = re.sub(rf"(?<![\w.]){re.escape(_plain(was))}(?!\w)", lambda _, now=value: _plain(now), text)  # type: ignore[misc]
    return text


def _parts(document: Any) -> list[tuple[Path, Any]]:
    """The document and what is in it, from the outside in; of a large one the outer parts."""
    found: list[tuple[Path, Any]] = [((), document)]
    for path, value in found:
        if len(found) > _MOST_PLACES:
            break
        steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        found += [((*path, step), item) for step, item in steps]
    return found


def _at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else dump(value).decode()


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
