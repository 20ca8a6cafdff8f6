"""Drift: the model still answers, but not the way it used to.

Providers change models behind one name. These faults change the words of an answer as such a change would, and leave
the protocol around them valid: an agent that parses, matches or quotes the old form finds out here. What a drift finds
nothing to change in (no JSON to rename in, no refusal to rephrase) does not fire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from flakestorm.config.model import LlmFault
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Interceptor
from flakestorm.faults.base import Scene, llm_faults
from flakestorm.faults.replies import editing
from flakestorm.patterns.refusal import is_refusal
from flakestorm.wire.base import Edit

__all__ = ["drifted", "response_drift"]

Drift = Callable[[str, LlmFault, Choices], str]

_LEVELS = ("subtle", "moderate", "significant")
_FENCED = re.compile(r"(?P<before>.*?```[a-zA-Z]*\n)(?P<json>.*?)(?P<after>\n```.*)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@llm_faults.add("response_drift")
def response_drift(spec: LlmFault, scene: Scene) -> Interceptor:
    """The answer as another version of the model would have put it.

    `drift_type` (json_field_rename) says in which way, `severity` (moderate) how much: each level changes more than the
    one below it. `verbosity_shift` takes `direction` (expand) and `factor` instead.
    """
    kind = spec.drift_type or "json_field_rename"
    change = Edit(
        text=lambda text: drifted(text, spec, scene.choices), on_change=lambda: scene.fired(f"{kind}, {_level(spec)}")
    )
    return editing(change, scene, otherwise=f"{kind} found nothing to change in the answer")


def drifted(text: str, spec: LlmFault, choices: Choices) -> str:
    """The text after the drift that the settings describe; the same text where there is nothing to change."""
    return _DRIFTS[spec.drift_type or "json_field_rename"](text, spec, choices) if text.strip() else text


def _level(spec: LlmFault) -> str:
    return spec.severity or "moderate"


# --- json_field_rename ---------------------------------------------------------------------------------------------


def _rename(text: str, spec: LlmFault, _: Choices) -> str:
    """Names of JSON fields change: subtle, their spelling; moderate, a word in them; significant, all of them."""
    fenced = _FENCED.fullmatch(text)
    before, document, after = fenced.group("before", "json", "after") if fenced else ("", text, "")
    try:
        value = json.loads(document)
    except ValueError:
        return text
    names = list(dict.fromkeys(_fields(value)))
    if not names:
        return text
    new: dict[str, str] = {}
    taken: set[str] = set()
    for at, name in enumerate(names):
        renamed = _RENAMES[_level(spec)](name, at)
        while renamed in taken:  # two fields may not become one
            renamed += "_"
        taken.add(renamed)
        new[name] = renamed
    indent = 2 if "\n" in document.strip() else None
    return before + json.dumps(_renamed(value, new), ensure_ascii=False, indent=indent) + after


def _fields(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for key, item in value.items() for name in (key, *_fields(item))]
    return [name for item in value for name in _fields(item)] if isinstance(value, list) else []


def _renamed(value: Any, new: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {new[key]: _renamed(item, new) for key, item in value.items()}
    return [_renamed(item, new) for item in value] if isinstance(value, list) else value


def _respelt(name: str, _: int) -> str:
    """snake_case becomes camelCase and the other way round; one plain word gets a capital."""
    if "_" in name.strip("_"):
        head, *rest = name.split("_")
        return head + "".join(word.capitalize() for word in rest)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return snake if snake != name else name[:1].upper() + name[1:] or "_"


_RENAMES: dict[str, Callable[[str, int], str]] = {
    "subtle": _respelt,
    "moderate": lambda name, _: f"{name}_value" if not name.endswith("_value") else name.removesuffix("_value"),
    "significant": lambda _, at: f"field_{at + 1}",
}

# --- format_change -------------------------------------------------------------------------------------------------


def _reformat(text: str, spec: LlmFault, _: Choices) -> str:
    """The same content in another dress: subtle, a code fence; moderate, Markdown; significant, a JSON envelope."""
    match _level(spec):
        case "subtle":
            return f"```\n{text}\n```"
        case "moderate":
            points = "\n".join(f"- {part}" for part in _parts(text))
            return f"## Answer\n\n{points}\n"
        case _:
            return json.dumps({"response": {"content": text, "format": "text"}}, ensure_ascii=False)


def _parts(text: str) -> list[str]:
    return [part for line in text.splitlines() for part in _SENTENCE.split(line.strip()) if part]


# --- verbosity_shift -----------------------------------------------------------------------------------------------

_PADDING = (
    "In other words, that is what it comes down to.",
    "To be thorough, it is worth keeping the context of your request in mind.",
    "Please let me know if you would like me to go into more detail on any of these points.",
    "As mentioned above, this is based on the information available at this time.",
)


_SCALES = {"subtle": 1.5, "moderate": 2.0, "significant": 4.0}
"""By how much each severity makes an answer longer, or shorter."""
_MIN_WORDS = 8


def _resize(text: str, spec: LlmFault, choices: Choices) -> str:
    """Longer by padding that says nothing new, or shorter by leaving the last sentences out.

    `factor` says exactly how much. Without it, each severity differs from the one below: an answer of so few sentences
    that two severities would leave the same ones ends in the middle of one.
    """
    if spec.direction == "compress":
        return _shortened(text, spec)
    scales = [spec.factor] if spec.factor else [_SCALES[level] for level in _LEVELS[: _LEVELS.index(_level(spec)) + 1]]
    grown, n = text, 0
    for scale in scales:
        least = n + 1
        while len(grown) < len(text) * scale or n < least:
            grown, n = f"{grown} {choices.pick(_PADDING, 'padding', n)}", n + 1
    return grown


def _shortened(text: str, spec: LlmFault) -> str:
    parts = _SENTENCE.split(text)
    if not spec.factor and len(parts) < 4 and len(words := text.split(" ")) >= _MIN_WORDS:
        parts = words
    kept = max(1, round(len(parts) * (spec.factor or 1 / _SCALES[_level(spec)])))
    return text if kept >= len(parts) else " ".join(parts[:kept])


# --- refusal_rephrase ----------------------------------------------------------------------------------------------

_REFUSALS = {
    "subtle": "I'm sorry, but I'm not able to help with that.",
    "moderate": "That falls outside of what I can assist with. Is there something else you would like to do?",
    "significant": "This one is best taken up with somebody else.",
}


def _rephrase(text: str, spec: LlmFault, _: Choices) -> str:
    """A refusal in other words, the further from the usual ones the more severe."""
    words = _REFUSALS[_level(spec)]
    return text if not is_refusal(text) else words if text.strip() != words else f"{words} {_REGRET}"


_REGRET = "I hope you understand."

# --- tone_shift ----------------------------------------------------------------------------------------------------


def _retone(text: str, spec: LlmFault, _: Choices) -> str:
    """subtle: a friendly frame; moderate: chatty, with exclamation marks; significant: curt, without courtesy."""
    match _level(spec):
        case "subtle":
            return f"Of course! {text} I hope this helps."
        case "moderate":
            return f"Hey there! {text.replace('. ', '! ').rstrip('.')}! 🎉 Anything else, just shout!"
        case _:
            return re.sub(r"(?i)\b(please|thank you|thanks|sorry|of course|happy to help)\b[,.!]?\s*", "", text).upper()


_DRIFTS: dict[str, Drift] = {
    "json_field_rename": _rename,
    "format_change": _reformat,
    "verbosity_shift": _resize,
    "refusal_rephrase": _rephrase,
    "tone_shift": _retone,
}
