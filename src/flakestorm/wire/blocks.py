"""Reading requests whose messages are lists of blocks: texts, tool calls, and results that quote a call's id only."""

from __future__ import annotations

from collections.abc import Callable

from flakestorm.wire.base import ToolCall, ToolResult, Turn
from flakestorm.wire.shape import Doc, objects, string

__all__ = ["turns_of"]


def turns_of(
    doc: Doc,
    *,
    text: Callable[[object], str],
    calls: Callable[[list[Doc]], tuple[ToolCall, ...]],
    results: Callable[[list[Doc], dict[str, str]], tuple[ToolResult, ...]],
) -> tuple[Turn, ...]:
    """The conversation of a request: its `system`, then its `messages`.

    Args:
        doc: the request.
        text: what a content says in words, be it a string or a list of blocks.
        calls: the tool calls among these blocks.
        results: the tool results among these blocks, given the tool's name for the id of each call so far.
    """
    names: dict[str, str] = {}
    system = text(doc.get("system"))
    turns = [Turn("system", system)] if system else []
    for message in objects(doc.get("messages")):
        content = message.get("content")
        blocks = objects(content)
        called = calls(blocks)
        names.update((call.id, call.name) for call in called)
        turns.append(Turn(string(message.get("role")), text(content), called, results(blocks, names)))
    return tuple(turns)
