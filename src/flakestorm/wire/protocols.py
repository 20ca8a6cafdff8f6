"""Which protocols of models there are. Each is imported when a call may speak it, or when somebody asks for it by name.

All of them are recognised by method, path and body of a request. The paths stand here as well, in short, so that a call
that cannot be of a protocol costs it nothing: neither its import nor a look at the body.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import cast

from flakestorm.core.call import Call
from flakestorm.core.record import Record
from flakestorm.wire.base import Wire

__all__ = ["PROTOCOLS", "Protocol", "candidates", "wire_of", "wires"]


class Protocol(Record, frozen=True):
    """Where a protocol lives.

    Args:
        name: as `Wire.name` says it.
        home: `module:class` in this room.
        marks: the path of each of its requests holds one of these.
    """

    name: str
    home: str
    marks: tuple[str, ...]


PROTOCOLS = (
    Protocol("openai_chat", "openai_chat.protocol:OpenAIChat", ("/chat/completions",)),
    Protocol("openai_responses", "openai_responses.protocol:OpenAIResponses", ("/responses",)),
    Protocol("anthropic", "anthropic.protocol:Anthropic", ("/v1/messages", ":rawPredict", ":streamRawPredict")),
    Protocol("gemini", "gemini.protocol:Gemini", (":generateContent", ":streamGenerateContent")),
    Protocol("interactions", "interactions:Interactions", ("/interactions",)),
    Protocol("ollama", "ollama.protocol:Ollama", ("/api/chat", "/api/generate")),
    Protocol("bedrock", "bedrock:Bedrock", ("/converse",)),
    Protocol("bedrock_invoke", "bedrock:BedrockInvoke", ("/invoke",)),
    Protocol("embeddings", "embeddings:Embeddings", ("mbed", ":predict")),
    Protocol("completions", "completions:Completions", ("/completions", "/v1/chat", "/v2/chat")),
)
"""In the order in which they are asked whether a call is theirs."""

_HOMES = {protocol.name: protocol.home for protocol in PROTOCOLS} | {"mcp": "mcp.protocol:Mcp"}


def candidates(call: Call) -> tuple[Wire, ...]:
    """The wires of models that may be this call's, by its method and path."""
    return _speakers(call.url.partition("?")[0]) if call.method == "POST" else ()


@lru_cache(maxsize=512)  # an agent asks the same few addresses; without their queries, which may hold secrets
def _speakers(address: str) -> tuple[Wire, ...]:
    return tuple(_load(each.name) for each in PROTOCOLS if any(mark in address for mark in each.marks))


def wire_of(name: str) -> Wire | None:
    """The wire a call or a tape names; None when the name is empty or of a protocol not known here."""
    return _load(name) if name in _HOMES else None


def wires() -> tuple[Wire, ...]:
    """All wires of models, in the order of `PROTOCOLS`."""
    return tuple(_load(protocol.name) for protocol in PROTOCOLS)


@cache
def _load(name: str) -> Wire:
    module, _, kind = _HOMES[name].partition(":")
    return cast(Wire, getattr(import_module(f"flakestorm.wire.{module}"), kind)())
