"""Faults of what a tool says: it says something false, leaves something out, or says nothing, and calls that a success.

The tool runs, and its result reaches the agent as valid as it was: JSON stays JSON, an MCP result keeps its output
schema and says the same in its text. An agent notices only if it thinks about what it is told. A result that holds
nothing to lie about stays as it is; the fault does not fire there and says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flakestorm.config.model import ToolFault
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.faults.base import Change, Scene, inward, result_faults, tool_faults
from flakestorm.faults.falsehoods import prose
from flakestorm.faults.lies import Lie, anything, applied, fields_left_out, lies, shortened, told
from flakestorm.faults.retelling import (
    Fits,
    Restated,
    Retelling,
    is_json,
    respoken,
    restated,
    retelling,
    told_otherwise,
)
from flakestorm.wire.json_schema import checker
from flakestorm.wire.mcp.protocol import Mcp
from flakestorm.wire.mcp.reply import answered
from flakestorm.wire.mcp.result import ABSENT, read_json
from flakestorm.wire.results import Told
from flakestorm.wire.shape import Doc, dump
from flakestorm.wire.splice import Path, edited

__all__ = ["drop_fields", "dropped_result", "empty", "wrong_result", "wrong_value"]

_CHARACTERS_PER_LIE = 400
_MOST_IN_TEXT = 3
_NOTHING_THERE = "the result is empty anyway"


@tool_faults.add("wrong_value")
def wrong_value(_spec: ToolFault, scene: Scene) -> Interceptor:
    """Some of what the tool says is false: numbers shifted, dates stale, identifiers of another, fields exchanged, what
    stands in another row of a list, booleans turned round. Keys, types and formats stay; see `faults/lies.py`.

    In plain text, numbers, dates and identifiers are false. What was changed is in the ledger: `price 120 -> 134`.
    """
    return retelling(_false(scene.choices), scene)


@result_faults.add("wrong_value")
def wrong_result(_spec: ToolFault, scene: Scene, told: Told) -> Change | None:
    """As for calls: the text of the result is false in places. A failure is left alone."""
    return told_otherwise(_false(scene.choices), scene, told)


@tool_faults.add("drop_fields")
def drop_fields(_spec: ToolFault, scene: Scene) -> Interceptor:
    """One to three fields of a JSON result are left out, in all rows of a list; optional ones first, where the output
    schema of an MCP tool says which are. Where it needs every field, the result says `isError` and has no structure.
    """
    return retelling(_shorter(scene.choices), scene)


@result_faults.add("drop_fields")
def dropped_result(_spec: ToolFault, scene: Scene, told: Told) -> Change | None:
    """As for calls: fields of a JSON result are left out. A failure is left alone."""
    return told_otherwise(_shorter(scene.choices), scene, told)


@tool_faults.add("empty")
def empty(_spec: ToolFault, scene: Scene) -> Interceptor:
    """The tool says nothing: `{}` in place of a JSON object, `[]` of an array, `""` of a string, `null` of anything
    else, and no byte of any other text. An MCP result has no content, and the emptiest structure its schema allows.
    """

    def stage(call: Call) -> Flow:
        reply = yield from inward(call)
        if call.wire == Mcp.name:
            fits = anything if scene.promised is None else checker(scene.promised)
            return answered(call, reply, restated(lambda result: _without_content(result, fits), _NOTHING_THERE, scene))
        json = is_json(reply)
        return respoken(reply, lambda text: _nothing_of(text, json=json), _NOTHING_THERE, scene)

    return stage


def _false(choices: Choices) -> Retelling:
    def structured(document: Any, fits: Fits) -> Restated | None:
        chosen = lies(document, choices, fits)
        return Restated(applied(document, chosen), told(chosen), _values(chosen)) if chosen else None

    def text(was: str) -> tuple[str, str] | None:
        document = read_json(was)
        if document is ABSENT:
            most = 1 + min(_MOST_IN_TEXT - 1, len(was) // _CHARACTERS_PER_LIE)
            now, changes = prose(was, choices.stream("text"), most)
            return (now, ", ".join(f"{old} -> {new}" for old, new in changes)) if changes else None
        chosen = lies(document, choices)
        return (_spliced(was, applied(document, chosen), _values(chosen)), told(chosen)) if chosen else None

    return Retelling(text, structured, "the result holds nothing to lie about")


def _shorter(choices: Choices) -> Retelling:
    def structured(document: Any, fits: Fits) -> Restated | None:
        gone, names = fields_left_out(document, choices, fits)
        return Restated(shortened(document, gone), f"left out {names}", gone=gone) if gone else None

    def text(was: str) -> tuple[str, str] | None:
        document = read_json(was)
        gone, names = ([], "") if document is ABSENT else fields_left_out(document, choices)
        return (_spliced(was, shortened(document, gone), {}, gone), f"left out {names}") if gone else None

    return Retelling(text, structured, "the result has no fields to leave out")


def _values(chosen: Sequence[Lie]) -> dict[Path, Any]:
    return {path: value for lie in chosen for path, value in lie.values}


def _spliced(text: str, wanted: Any, values: Mapping[Path, Any], gone: Sequence[Path] = ()) -> str:
    """The text with these changes, in its own spacing and spelling; written anew where that cannot be done."""
    now = edited(text.encode("utf-8", "surrogatepass"), values=values, without=frozenset(gone))
    said = now.decode("utf-8", "surrogatepass")
    return said if read_json(said) == wanted else dump(wanted).decode()


def _nothing_of(text: str, *, json: bool) -> tuple[str, str] | None:
    document = read_json(text) if json else ABSENT
    now = "" if document is ABSENT else dump(_empty(document)).decode()
    return None if now == text.strip() else (now, "result left empty")


def _without_content(result: Doc, fits: Fits) -> tuple[Doc, str] | None:
    said: Doc = {**result, **{key: [] for key in ("content", "contents", "messages") if key in result}}
    if "structuredContent" in result:
        document = said.pop("structuredContent")
        forms: tuple[Any, ...] = ({}, _hollow(document, str, list), _hollow(document, list))
        now = next((form for form in forms if fits(form)), ABSENT)
        said.update({"isError": True} if now is ABSENT else {"structuredContent": now})
    if said == result:
        return None
    return said, "result left empty" + (", as an error" if said.get("isError") else "")


def _empty(document: Any) -> Any:
    return type(document)() if isinstance(document, (dict, list, str)) else None


def _hollow(document: Any, *kinds: type) -> Any:
    """The document with its texts or lists empty: what is of these kinds."""
    if isinstance(document, dict):
        return {key: _hollow(item, *kinds) for key, item in document.items()}
    return type(document)() if isinstance(document, kinds) else document
