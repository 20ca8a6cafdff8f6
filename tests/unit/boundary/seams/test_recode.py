"""A function replaced from within is still that function to everybody who looks."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from flakestorm.boundary.seams.recode import Recoded


def _closure() -> Callable[..., Any]:
    base = 10

    def add(a: int, b: int = 2, /, *, c: int = 3) -> int:
        """Adds."""
        return base + a + b + c

    return add


def _plain(a: int) -> tuple[int]:
    return (a,)


@functools.wraps(_plain)
def _decorated(*args: Any) -> Any:
    return _plain(*args)


async def _slow(a: int = 1) -> int:
    await asyncio.sleep(0)
    return a


def _generator(n: int) -> Any:
    yield from range(n)


FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (_closure(), (1,), 16),
    (_plain, (1,), (1,)),
    (_decorated, (1,), (1,)),
    (lambda *a, **k: (a, k), (1, 2), ((1, 2), {})),
]


def look(function: Callable[..., Any]) -> tuple[Any, ...]:
    return (
        inspect.signature(function),
        inspect.iscoroutinefunction(function),
        inspect.getsource(function),
        function.__doc__,
        function.__annotations__,
        function.__qualname__,
    )


@pytest.mark.parametrize(("function", "args", "result"), FUNCTIONS)
def test_calls_go_elsewhere_and_come_back(function: Any, args: Any, result: Any) -> None:
    seen: list[Any] = []

    def instead(*given: Any, **named: Any) -> Any:
        seen.append((given, named))
        return recoded.original(*given, **named)

    before, attributes, reference = look(function), dict(vars(function)), function
    recoded = Recoded(function, instead)
    recoded.put_in()
    try:
        assert reference(*args) == result
        assert look(function) == before
    finally:
        recoded.put_back()
    assert seen == [(args, {})]
    assert function(*args) == result
    assert len(seen) == 1
    assert (look(function), vars(function)) == (before, attributes)


async def test_a_coroutine_function_stays_one() -> None:
    async def instead(*args: Any) -> str:
        return f"instead {args} {await recoded.original(*args)}"

    recoded = Recoded(_slow, instead)
    recoded.put_in()
    assert inspect.iscoroutinefunction(_slow)
    assert await _slow(4) == "instead (4,) 4"
    recoded.put_back()
    assert await _slow() == 1


def test_a_generator_function_gives_the_other_s_generator() -> None:
    recoded = Recoded(_generator, lambda n: recoded.original(n + 1))
    recoded.put_in()
    assert list(_generator(2)) == [0, 1, 2]
    recoded.put_back()
    assert inspect.isgeneratorfunction(_generator)
    assert list(_generator(2)) == [0, 1]


def test_a_signature_of_its_own_is_kept() -> None:
    def search(to: str) -> str:
        return to

    own = inspect.Signature([inspect.Parameter("anything", inspect.Parameter.POSITIONAL_ONLY)])
    vars(search)["__signature__"] = own
    recoded = Recoded(search, lambda *a: "instead")
    recoded.put_in()
    assert (inspect.signature(search), search("x")) == (own, "instead")
    recoded.put_back()
    assert (inspect.signature(search), search("x")) == (own, "x")
