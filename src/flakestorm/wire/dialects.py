"""Where a model request keeps what the model is told: its system prompt, and the messages that are not the model's own.

The protocols agree on the plan and differ in the names: a list of messages, each with a content that is a string or a
list of parts, and a system prompt that is a member of its own or the first message. So a dialect is a few words here,
and `context.py` reads and writes them all.

Bedrock's Converse is not among them: its requests are signed with their bodies, so none can be changed on its way. Nor
are Gemini's Interactions and Cohere's first version, which spell a conversation in other ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from flakestorm.wire.shape import Doc, objects, string

__all__ = ["Dialect", "Role", "dialect_of"]

Role = Literal["user", "tool", "system", ""]
"""Who speaks in a message: the user, tools that were asked, the developer; empty for the model itself."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names of one protocol.

    Args:
        messages: the member that holds the messages; a string there is the one message of the user.
        content: the member of a message that holds its text.
        role: who speaks in a message.
        part: what a part of text is, beside its `text`.
        system: the member that holds the system prompt; empty where that is a message.
        system_parts: the member in that one that holds its parts; empty where there is none between.
    """

    messages: str
    content: str
    role: Callable[[Doc], Role]
    part: Mapping[str, str] = field(default_factory=dict)
    system: str = ""
    system_parts: str = ""

    def is_text(self, part: object) -> bool:
        """Whether this part of a content is text."""
        return (
            isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type") == self.part.get("type")
        )


def _by_role(message: Doc) -> Role:
    match message.get("role"):
        case "user":
            return "user"
        case "tool" | "function":
            return "tool"
        case "system" | "developer":
            return "system"
    return ""


def _by_item(item: Doc) -> Role:
    kind = string(item.get("type"))
    if kind.endswith("_output"):
        return "tool"
    return _by_role(item) if kind in ("", "message") else ""


def _by_block(message: Doc) -> Role:
    if message.get("role") != "user":
        return ""
    return "tool" if any(block.get("type") == "tool_result" for block in objects(message.get("content"))) else "user"


def _by_part(content: Doc) -> Role:
    if content.get("role", "user") not in ("user", "function", "tool"):
        return ""
    responds = any("functionResponse" in part or "function_response" in part for part in objects(content.get("parts")))
    return "tool" if responds else "user"


_TEXT = {"type": "text"}
_DIALECTS = {
    "openai_chat": Dialect("messages", "content", _by_role, _TEXT),
    "openai_responses": Dialect("input", "content", _by_item, {"type": "input_text"}, "instructions"),
    "anthropic": Dialect("messages", "content", _by_block, _TEXT, "system"),
    "gemini": Dialect("contents", "parts", _by_part, {}, "systemInstruction", "parts"),
    "ollama": Dialect("messages", "content", _by_role),
}
_GENERATION = Dialect("prompt", "content", _by_role, system="system")
_COHERE = Dialect("messages", "content", _by_role, _TEXT)
_LEGACY = Dialect("prompt", "content", _by_role)
_SNAKE_CASE = Dialect("contents", "parts", _by_part, {}, "system_instruction", "parts")


def dialect_of(wire: str, doc: Doc) -> Dialect | None:
    """The dialect of a request, None for a wire whose requests cannot be added to.

    Args:
        wire: what `Call.wire` says.
        doc: the request's body; Ollama's generation, Gemini's snake case, and Cohere's chat among legacy completions
            are told by it.
    """
    if wire == "completions":
        return _COHERE if "messages" in doc else _LEGACY if "prompt" in doc else None
    if wire == "ollama" and "messages" not in doc:
        return _GENERATION
    if wire == "gemini" and "system_instruction" in doc:
        return _SNAKE_CASE
    return _DIALECTS.get(wire)
