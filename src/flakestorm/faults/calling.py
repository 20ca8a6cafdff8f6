"""A fault of what a model asks for: a tool call that cannot be carried out as it stands.

Models write tool calls, and write them wrong: arguments that are no JSON, a tool that nobody offered, a required
argument left out. The fault breaks the first tool call of a reply that can be broken in the wanted way, and leaves all
else as the model said it. A reply that calls no tool has nothing to break, so there it does not fire.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from flakestorm.config.model import LlmFault
from flakestorm.core.call import Call
from flakestorm.core.choices import Choices
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.faults.base import Scene, inward, llm_faults
from flakestorm.faults.replies import UNKNOWN, editing
from flakestorm.wire.base import Asked, Edit, ToolCall
from flakestorm.wire.protocols import wire_of

__all__ = ["bad_tool_call"]

_Broken = tuple[ToolCall, str]
"""A tool call as it reaches the agent, and what was done to it."""
_LITERAL = ("openai_chat", "openai_responses")
"""The wires that hand on whatever a model wrote. With the others only what broke off too early is ever seen."""
_MAX_NAME = 64


@llm_faults.add("bad_tool_call")
def bad_tool_call(spec: LlmFault, scene: Scene) -> Interceptor:
    """The first tool call of the answer is wrong, in the `form` that is given, or in one chosen by the seed.

    - `invalid_json`: the arguments are no JSON. OpenAI hands on what the model wrote, and Anthropic streams its
      beginning, as Converse does. Where arguments are objects nothing of the kind can be sent; so a whole reply of
      Anthropic has the members that came before the damage, Gemini ends with `MALFORMED_FUNCTION_CALL` and a whole
      reply of Converse with `malformed_tool_use`, without a tool call, and Ollama leaves the call in the text.
    - `unknown_tool`: the call names a tool that was not offered.
    - `missing_argument`: one that the tool's schema requires is left out; without a schema, any one.

    Embeddings call no tools. The answers of Bedrock's `invoke` where they are not Anthropic's, of Cohere's chat and of
    Google's Interactions cannot be changed; nor is a call of Gemini's changed that comes in pieces because the agent
    asked for that.
    """

    def stage(call: Call) -> Flow:
        wire = wire_of(call.wire)
        if wire is None:
            scene.idle(UNKNOWN)
            return (yield from inward(call))
        breaker = _Breaker(spec, scene, wire.asked(call.body), literal=call.wire in _LITERAL)
        broken = Edit(calls=breaker, on_change=breaker.tell)
        why_not = "the answer asks for no tool, or in no way that can be broken so"
        return (yield from editing(broken, scene, otherwise=why_not)(call))

    return stage


class _Breaker:
    """Breaks one tool call, and tells how once it is known that the reply has changed."""

    def __init__(self, spec: LlmFault, scene: Scene, asked: Asked, *, literal: bool) -> None:
        self._scene, self._asked, self._literal = scene, asked, literal
        forms = [spec.form] if spec.form in _FORMS else sorted(_FORMS, key=lambda form: scene.choices.uniform(form))
        self._forms = [_FORMS[form] for form in forms]
        self._done = ""

    def __call__(self, call: ToolCall) -> ToolCall:
        if self._done:
            return call
        for form in self._forms:
            if (broken := form(call, self._asked, self._scene.choices, self._literal)) is not None:
                new, self._done = broken
                return new
        return call

    def tell(self) -> None:
        """The reply has changed."""
        self._scene.fired(self._done)


def _invalid_json(call: ToolCall, _asked: Asked, choices: Choices, literal: bool) -> _Broken | None:
    arguments = _arguments(call)
    if arguments is None:
        return None  # free text, which is never JSON
    text = call.arguments.strip() or "{}"
    damages = {"end early": text[: max(1, len(text) * 2 // 3)]}
    if literal:
        damages |= {"have a bracket too many": text + "}", "are quoted as in Python": repr(arguments)}
    how = choices.pick([how for how, damaged in damages.items() if _unreadable(damaged)], "damage")
    return replace(call, arguments=damages[how]), f"arguments of {call.name} {how}"


def _unknown_tool(call: ToolCall, asked: Asked, choices: Choices, _literal: bool) -> _Broken:
    base = call.name[: _MAX_NAME - 9] or "tool"
    likely = [f"{base}_v2", f"get_{base}", f"{base}_tool", f"{base}_{choices.token('name', length=8)}"]
    name = choices.pick([name for name in likely if name not in asked.tools] or likely, "name")
    return replace(call, name=name), f"{call.name} is called {name}, which was not offered"


def _missing_argument(call: ToolCall, asked: Asked, choices: Choices, _literal: bool) -> _Broken | None:
    arguments, schema = _arguments(call), asked.parameters.get(call.name)
    required = None if schema is None else schema.get("required")
    needed = [name for name in arguments or () if schema is None or (isinstance(required, list) and name in required)]
    if not arguments or not needed:
        return None
    gone = choices.pick(needed, "argument")
    left = {name: value for name, value in arguments.items() if name != gone}
    text = json.dumps(left, ensure_ascii=False, separators=(",", ":"))
    return replace(call, arguments=text), f"argument {gone} of {call.name} left out"


_FORMS: Mapping[str | None, Callable[[ToolCall, Asked, Choices, bool], _Broken | None]] = {
    "invalid_json": _invalid_json,
    "unknown_tool": _unknown_tool,
    "missing_argument": _missing_argument,
}


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        value = json.loads(call.arguments.strip() or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _unreadable(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
