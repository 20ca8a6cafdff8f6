"""A function replaced from within: the same object, with other code.

Wrapping a function reaches those who look it up later; a framework that was given the function earlier keeps calling
the original. Giving the function object other code reaches everybody, and its identity, name, signature, annotations
and source stay what they were.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

__all__ = ["Recoded"]

_HERE = "the function to call instead goes here"


def _called(*args: Any, **kwargs: Any) -> Any:
    instead: Any = "the function to call instead goes here"
    return instead(*args, **kwargs)


async def _awaited(*args: Any, **kwargs: Any) -> Any:
    instead: Any = "the function to call instead goes here"
    return await instead(*args, **kwargs)


class Recoded:
    """A function whose calls can be sent elsewhere.

    Args:
        function: the function; one made with `async def` stays one.
        instead: gets its calls between `put_in` and `put_back`.

    `original` is another function that does what this one did.
    """

    def __init__(self, function: FunctionType, instead: Callable[..., Any]) -> None:
        self._function, self._instead = function, instead
        self._was = (function.__code__, function.__defaults__, function.__kwdefaults__)
        self._signed = "__signature__" in vars(function)
        self.original = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.original.__kwdefaults__ = function.__kwdefaults__
        self.original.__annotations__ = function.__annotations__
        self.original.__qualname__, self.original.__module__ = function.__qualname__, function.__module__
        vars(self.original).update(vars(function))

    def put_in(self) -> None:
        """From now on, calls go elsewhere."""
        function, code = self._function, self._was[0]
        signature = None if self._signed else _signature(function)
        template = (_awaited if inspect.iscoroutinefunction(function) else _called).__code__
        function.__code__ = template.replace(
            co_name=code.co_name,
            co_qualname=code.co_qualname,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            co_freevars=code.co_freevars,  # a closure stays attached, whether or not the code looks into it
            co_consts=tuple(self._instead if const == _HERE else const for const in template.co_consts),
        )
        function.__defaults__ = function.__kwdefaults__ = None
        if signature is not None:
            vars(function)["__signature__"] = signature

    def put_back(self) -> None:
        """The function is what it was."""
        function = self._function
        code, function.__defaults__, function.__kwdefaults__ = self._was
        function.__code__ = code  # last: the other code takes any arguments, this one may need its defaults
        if not self._signed:
            vars(function).pop("__signature__", None)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
