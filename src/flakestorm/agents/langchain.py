"""Agents that are LangChain runnables or LangGraph graphs, asked through `ainvoke`.

Neither library is imported here: a runnable is known by what it can do, and what it takes by the schema it publishes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from flakestorm.agents.history import History
from flakestorm.agents.request import RequestTemplate
from flakestorm.config.model import Agent
from flakestorm.errors import ConfigError
from flakestorm.wire.values import plain

__all__ = ["answer_of", "as_runnable", "input_maker"]

MakeInput = Callable[..., Any]
"""From a text, and the messages before it, to what the runnable takes; one that takes no messages gets the text."""

_USUAL_INPUTS = ("messages", "input", "question", "query", "prompt", "text", "user_input")
"""What an input is called, in the order of preference, where a runnable takes an object."""


def as_runnable(found: Any, agent: Agent) -> Callable[[str], Any]:
    """Ask a runnable: the input as it wants it, the answer's text out of what it gives back.

    No config is passed along, so recursion limits, tags and callbacks bound to the runnable are its own. The one
    exception is a graph with a checkpointer that no thread was bound to: each run is a thread of its own.

    Raises:
        ConfigError: it is not a runnable, or cannot be asked with one text.
    """
    if not callable(getattr(found, "ainvoke", None)):
        raise ConfigError(f"{agent.endpoint} {_not_a_runnable(found)}", key="agent.endpoint")
    make = _from_template(agent) if agent.request_template is not None else input_maker(found, agent.endpoint)
    plain_answer = agent.response_path is not None

    async def ask(prompt: str, history: History | None = None) -> Any:
        past = () if history is None or _keeps(found) else history
        said = await found.ainvoke(make(prompt, past), **_thread(found, history))
        return plain(said) if plain_answer else answer_of(said)

    return ask


def input_maker(runnable: Any, name: str) -> MakeInput:
    """How this runnable wants to be given a text, by the schema of its input.

    Args:
        runnable: anything with `get_input_jsonschema`; without it, the text goes in as it is.
        name: what the config calls it, for messages.

    Raises:
        ConfigError: it wants several values, or one that cannot be told from the others.
    """
    schema = _input_schema(runnable)
    fields = schema.get("properties")
    if not isinstance(fields, dict) or not fields:
        return lambda prompt, past=(): prompt
    required = schema.get("required")
    needed = [key for key in required if key in fields] if isinstance(required, list) else []
    key = next((key for key in _USUAL_INPUTS if key in fields), None)
    if key is None:
        candidates = needed or list(fields)
        key = candidates[0] if len(candidates) == 1 else None
    others = [other for other in needed if other != key]
    if key is None or others:
        raise ConfigError(
            f"{name} takes {', '.join(map(str, fields))}, and one text does not fill them; set "
            'agent.request_template to the object it takes, for example {"input": "{prompt}", "language": "en"}',
            key="agent.endpoint",
        )
    if key == "messages" or fields[key].get("type") == "array":
        return lambda prompt, past=(): {key: [*past, {"role": "user", "content": prompt}]}
    return lambda prompt, past=(): {key: prompt}


def answer_of(said: Any) -> Any:
    """What the agent answered, as far as it can be told: text, or an object in which the usual keys are looked for.

    A graph's state answers with its structured response, else with its last message. A graph that stopped to ask a
    human has not answered, which is an error.
    """
    if isinstance(said, Mapping):
        if said.get("__interrupt__"):
            asked = [plain(getattr(interrupt, "value", interrupt)) for interrupt in said["__interrupt__"]]
            return {"error": f"the graph stopped to ask a human: {json.dumps(asked, ensure_ascii=False)}"}
        if said.get("structured_response") is not None:
            return {"output": plain(said["structured_response"])}
        messages = said.get("messages")
        if isinstance(messages, (list, tuple)) and messages:
            return {"output": _message_text(messages[-1])}
        return {key: _message_text(value) if _is_message(value) else plain(value) for key, value in said.items()}
    if _is_message(said):
        return {"output": _message_text(said)}
    if isinstance(said, (list, tuple)) and said and _is_message(said[-1]):
        return {"output": _message_text(said[-1])}
    return said if isinstance(said, str) or said is None else {"output": plain(said)}


def _from_template(agent: Agent) -> MakeInput:
    template = RequestTemplate(replace(agent, method="POST"))

    def make(prompt: str, _: object = ()) -> Any:
        text = template.render(prompt).body.decode("utf-8")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):  # a template that is a text
            return text

    return make


def _keeps(runnable: Any) -> bool:
    """Whether it is a graph that remembers its threads."""
    return bool(getattr(getattr(runnable, "bound", runnable), "checkpointer", None))


def _thread(runnable: Any, history: History | None) -> dict[str, Any]:
    """The config that gives a run a thread of its own, where the graph keeps threads and was bound to none."""
    graph = getattr(runnable, "bound", runnable)
    if not _keeps(runnable):
        return {}
    for holder in (runnable, graph):
        bound = getattr(holder, "config", None)
        if isinstance(bound, Mapping) and (bound.get("configurable") or {}).get("thread_id"):
            return {}
    return {"config": {"configurable": {"thread_id": (History() if history is None else history).thread}}}


def _input_schema(runnable: Any) -> Mapping[str, Any]:
    describe = getattr(runnable, "get_input_jsonschema", None)
    if not callable(describe):
        return {}
    try:
        schema = describe()
    except Exception:  # types that have no JSON schema; it may still take a text
        return {}
    if not isinstance(schema, Mapping):
        return {}
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith("#/$defs/"):
        found = (schema.get("$defs") or {}).get(target.removeprefix("#/$defs/"))
        return found if isinstance(found, Mapping) else {}
    return schema


def _is_message(value: Any) -> bool:
    return (
        isinstance(getattr(value, "type", None), str) and hasattr(value, "content") and not isinstance(value, Mapping)
    )


def _message_text(message: Any) -> str:
    """The text of a message: its content, or those of its blocks that are text."""
    content = message.get("content") if isinstance(message, Mapping) else getattr(message, "content", message)
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(plain(content), ensure_ascii=False)
    parts = [block if isinstance(block, str) else block.get("text") for block in content if _is_text(block)]
    return "".join(part for part in parts if isinstance(part, str))


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, Mapping) and block.get("type") in ("text", "output_text"))


def _not_a_runnable(found: Any) -> str:
    if callable(getattr(found, "compile", None)):
        return "is a graph that was not compiled; name what its compile() returns"
    if callable(found):
        return "is a function and not a runnable; name the runnable, or use agent.type: python for a function"
    return f"is of type {type(found).__name__} and has no ainvoke; use agent.type: python for a function"
