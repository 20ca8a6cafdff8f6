"""What a mutation is, and the types there are.

A type is a handful of operators; each writes a text (or changes a request) from a draw of its own, so that one operator
gives many mutations. An operator says its kind itself, because a type may hold both: *benign* keeps what the user
wants, so the agent should do it; *attack* is hostile or takes the sense away, so the agent should keep its rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from flakestorm.core.choices import Draw
from flakestorm.core.conversation import Conversation
from flakestorm.core.registry import Registry

if TYPE_CHECKING:
    from flakestorm.mutations.outgoing import Outgoing

__all__ = [
    "REQUEST_TYPES",
    "TEXT_LIMIT",
    "AnyOperator",
    "ConversationOperator",
    "Kind",
    "Mutation",
    "Operator",
    "RequestOperator",
    "types",
]

Kind: TypeAlias = Literal["benign", "attack"]

TEXT_LIMIT = 1_000_000
"""Characters; no mutated text is longer."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to write a text anew.

    Args:
        name: in reports, unique in its type.
        kind: what becomes of the user's intent.
        write: gives the new text, or None where the operator finds nothing to change.
        undo: gives the prompt back, for encodings that lose nothing.
    """

    name: str
    kind: Kind
    write: Callable[[str, Draw], str | None]
    undo: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class RequestOperator:
    """One way to change the request that carries the prompt.

    Args:
        name, kind: as in `Operator`.
        change: gives the request as it is to be sent.
    """

    name: str
    kind: Kind
    change: Callable[[Outgoing, Draw], Outgoing]


@dataclass(frozen=True, slots=True)
class ConversationOperator:
    """One way to change a conversation as a whole; single texts have none of it.

    Args:
        name, kind: as in `Operator`.
        change: gives the new conversation, whose last turn is that of the old one.
    """

    name: str
    kind: Kind
    change: Callable[[Conversation, Draw], Conversation]


AnyOperator: TypeAlias = Operator | RequestOperator | ConversationOperator


@dataclass(frozen=True, slots=True)
class Mutation:
    """One golden prompt, transformed.

    Args:
        type, operator, kind: how.
        original: the golden prompt; text: what is sent, which a change of the request leaves as it was.
        number: its place in the endless row of its type, from 1.
        weight: in the robustness score.
        change: what becomes of the request, for the types that transform it.
    """

    type: str
    operator: str
    kind: Kind
    original: str
    text: str
    number: int
    weight: float = 1.0
    change: Callable[[Outgoing], Outgoing] | None = None


REQUEST_TYPES = (
    "http_header_injection", "payload_size_attack", "content_type_confusion", "query_parameter_poisoning",
    "request_method_attack", "protocol_level_attack", "resource_exhaustion", "concurrent_request_pattern",
    "timeout_manipulation",
)  # fmt: skip
"""The types that transform the request itself."""

_HOMES = {
    "wording": ("paraphrase", "semantic_similarity_attack"),
    "noise": ("noise",),
    "tone": ("tone_shift",),
    "injection": ("prompt_injection", "context_manipulation"),
    "attacks": ("advanced_jailbreak", "multi_turn_attack"),
    "encoding": ("encoding_attacks",),
    "tokens": ("token_manipulation",),
    "structure": ("format_poisoning", "length_extremes"),
    "temporal": ("temporal_attack",),
    "languages": ("language_mixing",),
    "request": ("http_header_injection", "content_type_confusion", "query_parameter_poisoning",
                "request_method_attack"),
    "load": ("payload_size_attack", "resource_exhaustion", "concurrent_request_pattern", "timeout_manipulation",
             "protocol_level_attack"),
}  # fmt: skip

types: Registry[Callable[[], tuple[AnyOperator, ...]]] = Registry(
    "mutation type",
    "flakestorm.mutations",
    {name: f"{__package__}.{module}" for module, names in _HOMES.items() for name in names},
)
"""Type -> a function that gives its operators. Plug-ins add theirs under the entry-point group
`flakestorm.mutations`. `custom` is not here: its operators come from the config."""
