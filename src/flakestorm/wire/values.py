"""Python values as the bytes of a call: what a function was given, what it returned, what it raised.

A tool that is a plain function crosses the boundary like any other call, so its arguments and its result need a form
that a tape can keep and a fault can change. JSON is that form; text and bytes stay what they are. A value that JSON
has no word for is written as closely as can be and never with anything that differs from run to run (addresses, the
order of a set), so two recordings of the same run are the same bytes.
"""

from __future__ import annotations

import builtins
import inspect
import json
import math
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from types import UnionType
from typing import Any

from flakestorm.core.call import Reply, header

__all__ = ["Parameters", "error_of", "plain", "raised", "returned", "value_of"]

_JSON, _TEXT, _BYTES = "application/json", "text/plain; charset=utf-8", "application/octet-stream"
_DEPTH = 60
_FRAMEWORKS = (
    "agents.run_context.", "agents.tool_context.", "crewai.", "langchain.", "langchain_core.", "langgraph.",
    "pydantic_ai.", "smolagents.",
)  # fmt: skip
"""Values of types from these modules were put among the arguments by a framework (run contexts, state, callbacks)."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def plain(value: Any) -> Any:
    """The value as JSON has it: objects by their fields, sets as sorted lists, cycles and the unknown by name."""
    return _plain(value, frozenset())


class Parameters:
    """The parameters of a function, to write its calls' arguments down by name.

    Arguments that a framework puts in beside the model's own are left out: contexts, injected state, callbacks.

    Args:
        function: the function; where it wraps another (`functools.wraps`), the innermost is taken.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        inner = inspect.unwrap(function)
        try:
            self._signature: inspect.Signature | None = inspect.signature(inner)
        except (TypeError, ValueError):  # some built-in functions have none
            self._signature = None
        self._injected = _injected(inner)

    def write(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """A JSON object of the arguments; positional ones without a name are the list `args`."""
        return _dump({name: _plain(value, frozenset()) for name, value in self._named(args, kwargs).items()})

    def changed(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], made: bytes, asked: bytes
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments to call with when `made`, what `write` gave, became `asked` on its way.

        Only what differs is replaced, so that what has no JSON form stays what it was. A body that is no JSON object
        changes nothing.
        """
        before, after = _object(made), _object(asked)
        new = {name: value for name, value in after.items() if name not in before or before[name] != value}
        if not new or self._signature is None:
            return args, kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return args, {**kwargs, **{name: value for name, value in new.items() if name != "args"}}
        extra = _extra(self._signature)
        for name, value in new.items():
            if name in self._signature.parameters:
                bound.arguments[name] = value
            elif extra is not None:
                bound.arguments.setdefault(extra, {})[name] = value
        return bound.args, bound.kwargs

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        named: dict[str, Any]
        try:
            if self._signature is None:
                raise TypeError
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:  # the call is about to fail, or nothing is known about it
            named = {"args": list(args)} if args else {}
            named.update(kwargs)
        else:
            extra = _extra(self._signature)
            named = {name: value for name, value in bound.arguments.items() if name != extra}
            named.update(bound.arguments.get(extra, {}) if extra else {})
        return {k: v for k, v in named.items() if k not in self._injected and not _of_framework(type(v))}


def returned(value: Any) -> Reply:
    """What a function returned, as a reply with status 200."""
    if isinstance(value, str):
        return Reply(200, (("content-type", _TEXT),), value.encode("utf-8", "replace"))
    if isinstance(value, (bytes, bytearray)):
        return Reply(200, (("content-type", _BYTES),), bytes(value))
    return Reply(200, (("content-type", _JSON),), _dump(_plain(value, frozenset())))


def raised(error: Exception) -> Reply:
    """What a function raised, as a reply with status 500 and the body `{"error": words, "type": name}`."""
    body = _dump({"error": str(error), "type": type(error).__name__})
    return Reply(500, (("content-type", _JSON),), body, reason=type(error).__name__)


def value_of(reply: Reply, body: bytes, was: Any = None) -> Any:
    """What a reply gives back to the caller of a function.

    Args:
        reply: for its headers.
        body: all of its body.
        was: what the function itself returned, where it was asked. JSON becomes an object of that type again if it is
            a tuple or a pydantic model and still fits.
    """
    kind = (header(reply.headers, "content-type") or "").partition(";")[0].strip().lower()
    if kind == _BYTES:
        return body
    text = body.decode("utf-8", "replace")
    if kind != _JSON:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(was, tuple) and isinstance(value, list) and type(was) is tuple:
        return tuple(value)
    validate = getattr(type(was), "model_validate", None)
    if validate is None:
        return value
    try:
        return validate(value)
    except Exception:  # it fits no longer, which is what the caller must cope with
        return value


def error_of(reply: Reply, body: bytes) -> Exception:
    """The exception that a reply with an error status is: the recorded type where it is a built-in one, else a
    `RuntimeError` with the words `503 Service Unavailable`."""
    said = _object(body)
    words = said.get("error")
    if isinstance(words, dict):
        words = words.get("message")
    text = words if isinstance(words, str) and words else reply.reason
    name = said.get("type")
    kind = getattr(builtins, name, None) if isinstance(name, str) else None
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(text)
        except TypeError:  # UnicodeDecodeError and the like want more than words
            pass
    if isinstance(name, str):
        return RuntimeError(f"{name}: {text}")
    return RuntimeError(f"{reply.status} {text}".rstrip())


def _plain(value: Any, within: frozenset[int]) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, within)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if id(value) in within or len(within) > _DEPTH:
        return f"<{_type_name(value)}>"
    within |= {id(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item, within) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item, within) for item in value), key=_dump)
    if isinstance(value, Sequence):
        return [_plain(item, within) for item in value]
    return _object_form(value, within)


def _object_form(value: Any, within: frozenset[int]) -> Any:
    """Objects by their fields; strangers' methods may do anything, so what fails is passed over."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name, None), within) for field in fields(value)}
    for method in ("model_dump", "tolist"):  # pydantic; numpy
        convert = None if isinstance(value, type) else getattr(value, method, None)
        if callable(convert):
            try:
                return _plain(convert(), within)
            except Exception:  # noqa: S112
                continue
    kind = type(value)
    if not any({"__str__", "__repr__"} & vars(base).keys() for base in kind.__mro__[:-1]):
        return f"<{_type_name(value)}>"
    try:
        return _ADDRESS.sub("", str(value))
    except Exception:
        return f"<{_type_name(value)}>"


def _type_name(value: Any) -> str:
    return type(value).__qualname__


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _extra(signature: inspect.Signature) -> str | None:
    """The name of the `**kwargs` parameter, if there is one."""
    return next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)


def _injected(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters whose annotation says that a framework fills them."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # annotations may name anything
        return frozenset()
    return frozenset(name for name, hint in hints.items() if any(map(_of_framework, _types(hint))))


def _types(hint: Any) -> Iterator[type]:
    """The types an annotation speaks of: itself, the members of a union, and what `Annotated` adds to it."""
    for part in (hint, *getattr(hint, "__metadata__", ())):
        yield part if isinstance(part, type) else type(part)
    if typing.get_origin(hint) in (typing.Union, UnionType, typing.Annotated):
        for member in typing.get_args(hint):
            yield from _types(member)
    elif isinstance(origin := typing.get_origin(hint), type):
        yield origin


def _of_framework(kind: type) -> bool:
    return f"{kind.__module__}.".startswith(_FRAMEWORKS)
