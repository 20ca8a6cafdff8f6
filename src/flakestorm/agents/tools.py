"""`agent.tools`: the agent's own functions, held so that each call of them crosses the boundary as a tool's.

The registry is a dict of names to tools or a list of tools. A tool is anything to be called, or a framework's tool
object, of which the functions it was made from are held; so the framework's own handling of arguments and errors stays
in play. Functions are held from within wherever a reference to them is; only what cannot be (partials, built-in
functions) is replaced, in the registry and in the modules that know it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from flakestorm.core.loading import load_object
from flakestorm.engine.ports import Boundary
from flakestorm.errors import ConfigError, Misuse

__all__ = ["hold_tools"]

KEY = "agent.tools"

_FUNCTIONS_OF = (
    ("func", "coroutine"),  # LangChain, CrewAI
    ("_run", "_arun"),  # the same, as classes of the agent's own
    ("function",),  # pydantic-ai
    ("forward",),  # smolagents
    ("__wrapped__",),  # openai-agents
    ("on_invoke_tool",),  # openai-agents, made by hand
)
"""Where tool objects keep the functions that do their work; the first row that holds one counts."""

_BASES = ("langchain_core.", "crewai.")
"""Packages whose own classes pass one kind of call on to the other, so that only an agent's own methods count."""


def hold_tools(name: str, folder: Path, boundary: Boundary) -> ExitStack:
    """Import the registry and hold every tool in it. Call it within `importing_from(folder)`.

    Import it before the agent: what an agent's module takes from a registry is then held already.

    Args:
        name: `module:registry`.
        folder: the config's folder.
        boundary: holds them.

    Returns:
        What lets go of them all and puts everything back.

    Raises:
        ConfigError: `name` is not of that form, there is nothing of that name, or it holds something that is not a
            tool; the message says which.
        AgentUnreachable: its module cannot be imported.
    """
    registry = load_object(name, folder=folder, key=KEY)
    module = sys.modules[name.partition(":")[0]]
    with ExitStack() as undo:
        for place, called, tool in _entries(name, registry):
            found = False
            for attribute, function in _functions(tool):
                found = True
                try:
                    held = boundary.tool(called, function, pairs=_returns_pairs(tool))
                except Misuse as error:
                    raise ConfigError(f"{name}: {error}", key=KEY) from error
                undo.callback(held.release)
                if held.function is not function:
                    _replace(undo, attribute, function, held.function, registry, place, tool, vars(module))
            if not found:
                raise ConfigError(
                    f"{called!r} in {name} is of type {type(tool).__name__}, neither a function nor a known "
                    "kind of tool; give the function itself",
                    key=KEY,
                )
        return undo.pop_all()


def _entries(name: str, registry: Any) -> Iterator[tuple[Any, str, Any]]:
    """Key or index, name and tool of each entry."""
    if isinstance(registry, Mapping):
        for key, tool in list(registry.items()):
            yield key, str(key), tool
        return
    if not isinstance(registry, Sequence) or isinstance(registry, (str, bytes)):
        raise ConfigError(
            f"{name} is of type {type(registry).__name__}; name a dict of names to functions, or a list of them",
            key=KEY,
        )
    seen: set[str] = set()
    for index, tool in enumerate(list(registry)):
        called = _name(tool)
        if called is None:
            raise ConfigError(
                f"entry {index} of {name}, of type {type(tool).__name__}, has no name; make {name} a dict of "
                "names to functions",
                key=KEY,
            )
        if called in seen:
            raise ConfigError(f"two tools of {name} are called {called!r}; make it a dict of names", key=KEY)
        seen.add(called)
        yield index, called, tool


def _name(tool: Any) -> str | None:
    if isinstance(tool, functools.partial):
        return _name(tool.func)
    for attribute in ("__name__",) if _is_function(tool) else ("name", "__name__"):
        name = getattr(tool, attribute, None)
        if isinstance(name, str) and name:
            return name
    return None


def _functions(tool: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that do a tool's work, and the attributes that hold them; `""` for the tool itself."""
    if not (_is_function(tool) or isinstance(tool, (functools.partial, type))):
        for attributes in _FUNCTIONS_OF:
            found = [(name, getattr(tool, name, None)) for name in attributes]
            functions = [(name, value) for name, value in found if callable(value) and not _inherited(tool, name)]
            if functions:
                yield from functions
                return
    if callable(tool):
        yield "", tool


def _is_function(tool: Any) -> bool:
    return isinstance(tool, (FunctionType, MethodType))


def _inherited(tool: Any, name: str) -> bool:
    """Whether a method is the framework's own, which calls another function of the tool's."""
    owner = next((kind for kind in type(tool).__mro__ if name in vars(kind)), None)
    is_method = owner is not None and isinstance(vars(owner)[name], FunctionType)
    return is_method and owner is not None and f"{owner.__module__}.".startswith(_BASES)


def _returns_pairs(tool: Any) -> bool:
    """LangChain's tools may return what is for the model together with what is for the program."""
    return getattr(tool, "response_format", None) == "content_and_artifact"


def _replace(
    undo: ExitStack,
    attribute: str,
    function: Callable[..., Any],
    held: Callable[..., Any],
    registry: Any,
    place: Any,
    tool: Any,
    module: dict[str, Any],
) -> None:
    """Put the wrapper where the function is, and see to it that the function comes back."""
    if attribute:
        object.__setattr__(tool, attribute, held)
        undo.callback(object.__setattr__, tool, attribute, function)
        return
    if not isinstance(registry, (MutableMapping, MutableSequence)):
        raise ConfigError(f"the registry cannot be changed, being a {type(registry).__name__}; use a list", key=KEY)
    registry[place] = held
    undo.callback(_put_back, registry, place, held, function)
    for name in [name for name, value in module.items() if value is function]:
        module[name] = held
        undo.callback(_put_back, module, name, held, function)


def _put_back(holder: Any, place: Any, held: object, function: object) -> None:
    """Unless the agent has put something else there meanwhile."""
    try:
        if holder[place] is held:
            holder[place] = function
    except LookupError:
        return
