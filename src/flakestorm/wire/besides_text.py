"""What a model was told and no text says: pictures and files, what its provider looked up, and what that remembers.

A tape keeps it, and nobody here can read it: a figure in an answer may come from there. The question is asked rarely
(an answer states what no text told), so this is plain reading of JSON, for all protocols at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flakestorm.wire.shape import parse, string

__all__ = ["fetched", "remembered", "shown"]

_PARTS = frozenset(
    {
        "image_url", "input_image", "image", "input_audio", "audio", "audio_url", "input_file", "file", "document",
        "document_url", "video_url", "video", "container_upload", "computer_screenshot",
    }
)  # fmt: skip
"""Types of parts that are no text."""

_MEMBERS = ("inlineData", "inline_data", "fileData", "file_data", "images", "image", "document", "video")
"""Members that hold such, in protocols whose parts have no type; Ollama's `images`, Gemini's and Bedrock's others."""

_CONVERSATION = ("messages", "system", "input", "instructions", "contents", "systemInstruction", "system_instruction")
_OWN_WORDS = {"functionCall", "function_call", "tool_calls", "arguments"}
"""What the model wrote itself: a tool may take a picture."""

_FETCHED = re.compile(
    rb'"(server_tool_use|(?:web_search|web_fetch|\w*code_execution|mcp|tool_search)_tool_(?:use|result)|mcp_tool_use'
    rb"|web_search_call|file_search_call|code_interpreter_call|mcp_call|url_citation|file_citation|executed_tools"
    rb'|groundingMetadata|urlContextMetadata|executableCode|codeExecutionResult|web_search_options)"\s*[:,}\]]'
)
"""Tools that providers run themselves. In JSON a quoted word like these is a type or a member, not part of a text."""

_DEPTH = 40


def shown(body: bytes) -> str:
    """What a request shows the model that is no text, in the protocol's word for it; empty where it shows nothing such.

    Args:
        body: the request, without content encoding.
    """
    doc = parse(body) or {}
    return next((word for name in _CONVERSATION for word in _parts(doc.get(name), _DEPTH)), "")


def fetched(body: bytes) -> str:
    """What in a request or reply says that the provider looks things up, or works them out, itself; empty if nothing.

    Args:
        body: of a request, or of a whole or streamed reply, without content encoding.
    """
    found = _FETCHED.search(body)
    return found[1].decode() if found else ""


def remembered(body: bytes) -> str:
    """What a request goes on from that the provider keeps: an id; empty where it holds the whole conversation."""
    doc = parse(body) or {}
    conversation = doc.get("conversation")
    kept = conversation.get("id") if isinstance(conversation, dict) else conversation
    return string(doc.get("previous_response_id")) or string(kept) or string(doc.get("cachedContent"))


def _parts(value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    if isinstance(value, list):
        for each in value:
            yield from _parts(each, depth - 1)
    elif isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind in _PARTS:
            yield kind
        yield from (name for name in _MEMBERS if isinstance(value.get(name), (dict, list)) and value[name])
        own = _OWN_WORDS | ({"input"} if kind == "tool_use" else {"toolUse"})
        for name, inner in value.items():
            if name not in own:
                yield from _parts(inner, depth - 1)
