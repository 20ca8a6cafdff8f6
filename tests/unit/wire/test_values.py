"""Python values as bytes: faithful where JSON has a word, the same on every run where it has none."""

from __future__ import annotations

import functools
import json
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flakestorm.core.call import Reply
from flakestorm.wire.values import Parameters, error_of, plain, raised, returned, value_of

JSON = (("content-type", "application/json"),)


class Flight(BaseModel):
    number: str
    seats: int = 0


@dataclass
class Point:
    x: int
    y: Any = None


class Colour(Enum):
    RED = "red"


class Bare:
    pass


class Said(Bare):
    def __str__(self) -> str:
        return f"<said at 0x7f00{id(self):x}>"


class Rude:
    def __str__(self) -> str:
        raise OSError("no")

    def model_dump(self) -> None:
        raise OSError("no")


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({"a": (1, 2.5, None, True)}, {"a": [1, 2.5, None, True]}),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        ({"b", "a"}, ["a", "b"]),
        (float("nan"), None),
        (2**80, 2**80),
        (b"abc\xff", "abc\ufffd"),
        (Colour.RED, "red"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(minutes=1), 60.0),
        (Decimal("1.50"), "1.50"),
        (Path("/a/b"), "/a/b"),
        (Flight(number="SK1"), {"number": "SK1", "seats": 0}),
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Pair(1, "b"), [1, "b"]),
        (OrderedDict(a=range(3)), {"a": [0, 1, 2]}),
        (SimpleNamespace(tolist=lambda: [1, 2]), [1, 2]),
        (Bare(), "<Bare>"),
        (Said(), "<said>"),
        (Rude(), "<Rude>"),
    ],
)
def test_plain(value: Any, form: Any) -> None:
    assert plain(value) == form
    assert json.loads(json.dumps(plain(value))) == form


def test_cycles_and_depth_end() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    assert plain(cycle) == [1, "<list>"]
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert "<list>" in json.dumps(plain(deep))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON_VALUES | st.binary())
def test_what_json_or_text_can_say_comes_back_as_it_was(value: Any) -> None:
    reply = returned(value)
    assert isinstance(reply.body, bytes)
    back = value_of(reply, reply.body)
    assert back == value
    assert type(back) is type(value)


def test_changed_values_take_the_type_they_had_where_they_still_fit() -> None:
    changed = Reply(200, JSON, b"[1,3]")
    assert value_of(changed, b"[1,3]", (1, 2)) == (1, 3)
    assert value_of(changed, b'{"number":"SK2"}', Flight(number="SK1")) == Flight(number="SK2")
    assert value_of(changed, b'{"seats":"x"}', Flight(number="SK1")) == {"seats": "x"}
    assert value_of(changed, b'{"a": 1{"result": tru', {"a": 1}) == '{"a": 1{"result": tru'
    assert value_of(Reply(200), b"words", None) == "words"


def test_exceptions_there_and_back() -> None:
    reply = raised(KeyError("oslo"))
    assert (reply.status, reply.reason) == (500, "KeyError")
    assert isinstance(reply.body, bytes)
    back = error_of(reply, reply.body)
    assert type(back) is KeyError

    class Odd(Exception):
        pass

    odd = raised(Odd("eh"))
    assert isinstance(odd.body, bytes)
    back = error_of(odd, odd.body)
    assert (type(back), str(back)) == (RuntimeError, "Odd: eh")


@pytest.mark.parametrize(
    ("reply", "body", "said"),
    [
        (Reply(503, JSON, reason="Service Unavailable"), b'{"error":"Service Unavailable"}', "503 Service Unavailable"),
        (Reply(404, JSON, reason="Not Found"), b'{"error":{"message":"no flight"}}', "404 no flight"),
        (Reply(500, reason="Oops"), b"<html>", "500 Oops"),
        (Reply(599), b"", "599"),
        (Reply(500, JSON), b'{"error":"x","type":"SystemExit"}', "SystemExit: x"),
        (Reply(500, JSON), b'{"error":"x","type":"UnicodeDecodeError"}', "UnicodeDecodeError: x"),
        (Reply(500, JSON), b'{"error":"x","type":"open"}', "open: x"),
    ],
)
def test_an_error_status_is_a_runtime_error_in_words(reply: Reply, body: bytes, said: str) -> None:
    error = error_of(reply, body)
    assert (type(error), str(error)) == (RuntimeError, said)


def _search(to: str, limit: int = 3, *tags: str, cheap: bool = False, **more: Any) -> None: ...


class TestParameters:
    @pytest.mark.parametrize(
        ("args", "kwargs", "written"),
        [
            (("Oslo",), {}, {"to": "Oslo"}),
            (
                ("Oslo", 5, "a", "b"),
                {"cheap": True, "seat": 1},
                {"to": "Oslo", "limit": 5, "tags": ["a", "b"], "cheap": True, "seat": 1},
            ),
            ((), {"limit": 1}, {"limit": 1}),
        ],
    )
    def test_arguments_are_written_by_name(self, args: Any, kwargs: Any, written: Any) -> None:
        assert json.loads(Parameters(_search).write(args, kwargs)) == written

    def test_without_a_signature_they_are_a_list(self) -> None:
        assert json.loads(Parameters(iter).write(([1], 2), {})) == {"args": [[1], 2]}
        assert json.loads(Parameters(lambda: 0).write((1,), {"b": 2})) == {"args": [1], "b": 2}

    def test_the_innermost_function_is_asked(self) -> None:
        @functools.wraps(_search)
        def anything(*args: Any, **kwargs: Any) -> None: ...

        assert json.loads(Parameters(anything).write(("Oslo",), {})) == {"to": "Oslo"}

    def test_what_a_framework_puts_in_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        context = type("RunContext", (), {"__module__": "pydantic_ai._run_context"})
        mark = type("InjectedState", (), {"__module__": "langgraph.prebuilt.tool_node"})
        monkeypatch.setitem(sys.modules, "pydantic_ai", SimpleNamespace(RunContext=context))

        def tool(ctx: Any, to: str, state: Any = None, config: Any = None) -> None: ...

        from typing import Annotated, Optional

        tool.__annotations__ = {"to": str, "state": Annotated[dict, mark()], "config": Optional[context]}  # noqa: UP045
        assert json.loads(Parameters(tool).write((context(), "Oslo", {"m": []}, {"c": 1}), {})) == {"to": "Oslo"}

    def test_a_user_s_own_agents_package_is_no_framework(self) -> None:
        own = dataclass(type("Trip", (), {"__annotations__": {"to": str}, "__module__": "agents.trips"}))
        assert json.loads(Parameters(lambda trip: 0).write((own("Oslo"),), {})) == {"trip": {"to": "Oslo"}}

    @pytest.mark.parametrize(
        ("change", "args", "kwargs"),
        [
            ({}, ("Oslo", 5), {}),
            ({"to": "Rome"}, ("Rome", 5), {}),
            ({"cheap": True}, ("Oslo", 5), {"cheap": True}),
            ({"seat": 1}, ("Oslo", 5), {"seat": 1}),
        ],
    )
    def test_only_what_differs_is_replaced(self, change: Any, args: Any, kwargs: Any) -> None:
        parameters, given_args = Parameters(_search), ("Oslo", 5)
        made = parameters.write(given_args, {})
        asked = json.dumps({**json.loads(made), **change}).encode()
        assert parameters.changed(given_args, {}, made, asked) == (args, kwargs)

    def test_a_body_that_is_no_object_changes_nothing(self) -> None:
        parameters = Parameters(_search)
        made = parameters.write(("Oslo",), {})
        assert parameters.changed(("Oslo",), {}, made, b"[") == (("Oslo",), {})
