"""Tool results in OpenAI Responses: `function_call_output` items, and those of other tools that the agent runs.

OpenAI's own kinds of tools have no name in a call; they are called by their type, e.g. `local_shell`.

With `previous_response_id` (or a `conversation`) OpenAI keeps what was said before, so a request holds new results
only, and not the calls that they answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flakestorm.wire.results import Found, Told, one_text
from flakestorm.wire.shape import Doc, items, string, text_of

__all__ = ["find", "holds", "spell"]

_OUTPUTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "apply_patch_call_output",
)


def holds(body: bytes) -> bool:
    """Whether a request may hold results, told without reading it."""
    return b'_call_output"' in body


def find(doc: Doc) -> Sequence[Found]:
    """The results in a request, in conversation order; each is named by the last call item with its id."""
    found: list[Found] = []
    called: dict[str, str] = {}  # call id -> tool
    resumed = bool(doc.get("previous_response_id") or doc.get("conversation"))
    for index, item in enumerate(items(doc.get("input"))):
        if not isinstance(item, dict):
            continue
        call_id = string(item.get("call_id")) or string(item.get("id"))
        kind = string(item.get("type"))
        if kind.endswith("_call"):
            called[call_id] = string(item.get("name")) or kind.removesuffix("_call")
        elif kind in _OUTPUTS:
            told = Told(text_of(item.get("output"), ("input_text", "output_text")))
            path = ("input", index)
            found.append(Found(call_id, called.get(call_id, ""), told, path, item, resumed=resumed))
    return found


def spell(entry: Doc, told: Told) -> Mapping[str, object]:
    """The protocol has no mark for failures; the text says so."""
    return {"output": one_text(entry.get("output"), told.text, "input_text")}
