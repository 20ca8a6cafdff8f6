"""Which agent a config gets."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_support import FakeBoundary, config
from flakestorm.agents import agents, make
from flakestorm.agents.command import CommandAgent
from flakestorm.agents.http import HttpAgent
from flakestorm.agents.python import PythonAgent
from flakestorm.errors import Misuse


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"endpoint": "http://a/"}, HttpAgent),
        ({"type": "python", "endpoint": "a:b"}, PythonAgent),
        ({"type": "command", "start": "cat"}, CommandAgent),
    ],
)
def test_built_in_types(block: dict[str, Any], kind: type) -> None:
    assert isinstance(make(config(Path(), **block), FakeBoundary(), concurrency=1), kind)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "langchain", "endpoint": "a:b"}, "'langchain' is not available in this version"),
        ({"type": "pyton", "endpoint": "a:b"}, "unknown agent type 'pyton'; did you mean 'python'"),
        ({"endpoint": "http://a/", "tools": "m:t"}, r"agent\.tools is not available"),
        ({"endpoint": "http://a/", "mcp": {"x": "cmd"}}, r"agent\.mcp is not available"),
    ],
)
def test_what_there_is_not_is_said(block: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        make(config(Path(), **block), FakeBoundary(), concurrency=1)


def test_plug_ins_get_the_whole_order(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Any] = []
    monkeypatch.setitem(agents._known, "mine", lambda order: orders.append(order) or PythonAgent(order.config))
    boundary, setting = FakeBoundary(), config(Path(), type="mine", endpoint="a:b")
    make(setting, boundary, concurrency=3)
    assert [(order.config, order.boundary, order.concurrency) for order in orders] == [(setting, boundary, 3)]


def test_kinds_that_are_not_asked_for_are_not_imported() -> None:
    code = (
        "import sys\nimport flakestorm.agents, flakestorm.api\n"
        "costly = {'aiohttp', 'jinja2', 'rich', *map('flakestorm.agents.'.__add__, ('command', 'http', 'python'))}\n"
        "print(sorted(costly & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
