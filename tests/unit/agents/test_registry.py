"""Which agent a config gets."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_support import FakeBoundary, FakeLine, config
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
        ({"type": "python", "endpoint": "a:b", "tools": "a:TOOLS"}, PythonAgent),
        ({"type": "langchain", "endpoint": "a:b", "tools": "a:TOOLS"}, PythonAgent),
        ({"type": "command", "start": "cat"}, CommandAgent),
    ],
)
def test_built_in_types(block: dict[str, Any], kind: type) -> None:
    assert isinstance(make(config(Path(), **block), FakeBoundary(), concurrency=1), kind)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "pyton", "endpoint": "a:b"}, "unknown agent type 'pyton'; did you mean 'python'"),
        (
            {"endpoint": "http://a/", "tools": "m:t"},
            r"agent\.tools: .* of type 'http' has its own; name its HTTP tools",
        ),
        ({"type": "command", "start": "cat", "tools": "m:t"}, r"agent\.tools: .* 'command' has its own"),
        (
            {"endpoint": "http://a/", "mcp": {"x": "cmd"}},
            "MCP servers can be handed only to an agent that flakestorm starts",
        ),
    ],
)
def test_what_there_is_not_is_said(block: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse, match=said):
        make(config(Path(), **block), FakeBoundary(), concurrency=1)


async def test_a_runnable_is_asked_as_one(tmp_path: Path) -> None:
    (tmp_path / "a_runnable.py").write_text("class R:\n  async def ainvoke(self, text): return text * 2\nchain = R()")
    agent = make(config(tmp_path, type="langchain", endpoint="a_runnable:chain"), FakeBoundary(), concurrency=1)
    await agent.start()
    assert (await agent.ask("ab", FakeLine())).output == "abab"
    await agent.close()


def test_plug_ins_get_the_whole_order(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Any] = []
    monkeypatch.setitem(
        agents._known, "mine", lambda order: orders.append(order) or PythonAgent(order.config, order.boundary)
    )
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
