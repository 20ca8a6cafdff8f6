"""`agent.tools`: registries of every shape, held and given back."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents_support import FakeBoundary, FakeLine, config
from flakestorm.agents.python import PythonAgent
from flakestorm.agents.tools import hold_tools
from flakestorm.boundary.hub import Hub
from flakestorm.boundary.session import Crossing
from flakestorm.core.loading import importing_from
from flakestorm.core.pipeline import chain
from flakestorm.errors import AgentUnreachable, ConfigError
from inprocess_support import Watcher

FUNCTIONS = "import functools\ndef search(to): return to\nasync def book(id): return id\n"


@contextmanager
def holding(folder: Path, code: str, boundary: Any, name: str = "my_tools:TOOLS") -> Iterator[Any]:
    """The registry of this code while its tools are held; the module is forgotten afterwards."""
    (folder / "my_tools.py").write_text(FUNCTIONS + code)
    with importing_from(folder):
        with hold_tools(name, folder, boundary):
            yield sys.modules["my_tools"]
        assert all(tool.released == 1 for tool in getattr(boundary, "held", ()))


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("TOOLS = {'find': search, 'book': book}", ["find", "book"]),
        ("TOOLS = [search, book]", ["search", "book"]),
        ("TOOLS = (search,)", ["search"]),
        ("class T:\n  def find(self, q): return q\nTOOLS = [T().find]", ["find"]),
        ("class T:\n  def __call__(self, q): return q\nTOOLS = {'find': T()}", ["find"]),
        ("class T:\n  name = 'find'\n  def __call__(self, q): return q\nTOOLS = [T()]", ["find"]),
        ("TOOLS = [functools.partial(search)]", ["search"]),
        ("class N: pass\nN.TOOLS = {}", []),
    ],
)
def test_the_tools_of_a_registry(tmp_path: Path, code: str, names: list[str]) -> None:
    boundary = FakeBoundary()
    name = "my_tools:N.TOOLS" if "class N" in code else "my_tools:TOOLS"
    with holding(tmp_path, code, boundary, name):
        assert boundary.tools == names


OBJECTS = {
    "LangChain": "class T:\n  name = 'find'\n  def __init__(self): self.func, self.coroutine = search, book\n"
    "  def _run(self, q): raise AssertionError\nTOOLS = [T()]",
    "LangChain, sync only": "class T:\n  name = 'find'\n  func, coroutine = staticmethod(search), None\nTOOLS = [T()]",
    "a class of the agent's own": "class T:\n  name = 'find'\n  def _run(self, q): return q\n"
    "  async def _arun(self, q): return q\nTOOLS = [T()]",
    "pydantic-ai": "class T:\n  name = 'find'\n  def __init__(self): self.function = search\nTOOLS = [T()]",
    "smolagents": "class T:\n  name = 'find'\n  def forward(self, q): return q\n"
    "  def __call__(self, q): raise AssertionError\nTOOLS = [T()]",
    "openai-agents": "class T:\n  name = 'find'\n  __wrapped__ = property(lambda self: search)\n"
    "  def __init__(self): self.on_invoke_tool = book\nTOOLS = [T()]",
    "openai-agents, by hand": "class T:\n  name = 'find'\n  on_invoke_tool = staticmethod(book)\nTOOLS = [T()]",
}
FUNCTIONS_OF = {
    "LangChain": ["search", "book"],
    "LangChain, sync only": ["search"],
    "a class of the agent's own": ["_run", "_arun"],
    "pydantic-ai": ["search"],
    "smolagents": ["forward"],
    "openai-agents": ["search"],
    "openai-agents, by hand": ["book"],
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_tool_objects_are_held_by_the_functions_they_were_made_from(tmp_path: Path, kind: str) -> None:
    held: list[tuple[str, str]] = []

    class Boundary(FakeBoundary):
        def tool(self, name: str, function: Any, *, pairs: bool = False) -> Any:
            held.append((name, function.__name__))
            tool = super().tool(name, function, pairs=pairs)
            tool.function = function
            return tool

    with holding(tmp_path, OBJECTS[kind], Boundary()):
        assert held == [("find", function) for function in FUNCTIONS_OF[kind]]


def test_a_framework_s_own_method_is_not_the_tool(tmp_path: Path) -> None:
    base = (
        "class Base:\n  async def _arun(self, q): return self._run(q)\nBase.__module__ = 'langchain_core.tools.base'\n"
    )
    boundary = FakeBoundary()
    own = "class T(Base):\n  name = 'find'\n  def _run(self, q): return q\nTOOLS = [T()]"
    with holding(tmp_path, base + own, boundary):
        assert boundary.tools == ["find"]


def test_results_in_pairs(tmp_path: Path) -> None:
    boundary = FakeBoundary()
    code = (
        "class T:\n  name, response_format, func = 'find', 'content_and_artifact', staticmethod(search)\nTOOLS = [T()]"
    )
    with holding(tmp_path, code, boundary):
        assert [tool.pairs for tool in boundary.held] == [True]


@pytest.mark.parametrize("code", ["TOOLS = {'search': quick}", "TOOLS = [quick]"])
def test_what_cannot_be_held_from_within_is_replaced_and_put_back(tmp_path: Path, code: str) -> None:
    with importing_from(tmp_path):
        (tmp_path / "my_tools.py").write_text(f"{FUNCTIONS}quick = functools.partial(search)\n{code}")
        with hold_tools("my_tools:TOOLS", tmp_path, FakeBoundary()):
            module = sys.modules["my_tools"]
            (place,) = module.TOOLS if isinstance(module.TOOLS, dict) else (0,)
            assert module.TOOLS[place]("Oslo") == module.quick("Oslo") == ("search", "Oslo")
        assert module.TOOLS[place]("Oslo") == module.quick("Oslo") == "Oslo"
        assert module.TOOLS[place] is module.quick


def test_what_the_agent_put_there_meanwhile_stays(tmp_path: Path) -> None:
    with importing_from(tmp_path):
        (tmp_path / "my_tools.py").write_text(f"{FUNCTIONS}TOOLS = {{'search': functools.partial(search), 'x': len}}")
        with hold_tools("my_tools:TOOLS", tmp_path, FakeBoundary()):
            module = sys.modules["my_tools"]
            module.TOOLS["search"] = "mine"
            del module.TOOLS["x"]
        assert module.TOOLS == {"search": "mine"}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("TOOLS = 3", "of type int; name a dict of names to functions, or a list"),
        ("TOOLS = 'search'", "of type str"),
        ("TOOLS = [search, search]", "two tools of my_tools:TOOLS are called 'search'"),
        ("TOOLS = [3]", "entry 0 of my_tools:TOOLS, of type int, has no name"),
        ("TOOLS = {'find': 3}", "'find' in my_tools:TOOLS is of type int, neither a function nor a known kind of tool"),
        ("TOOLS = {'a': search, 'b': search}", "search is the tool 'a' already"),
        ("TOOLS = (functools.partial(search),)", "cannot be changed, being a tuple"),
        ("", "there is no 'TOOLS' in my_tools"),
        ("import no_such_library", "No module named 'no_such_library'"),
    ],
)
def test_what_is_no_registry(tmp_path: Path, code: str, said: str) -> None:
    hub = Hub()
    (tmp_path / "my_tools.py").write_text(FUNCTIONS + code)
    with (
        importing_from(tmp_path),
        pytest.raises(AgentUnreachable if "import" in code else ConfigError, match=said) as caught,
        hold_tools("my_tools:TOOLS", tmp_path, hub),
    ):
        pass
    assert str(caught.value).startswith("agent.tools: ")


def test_a_name_of_another_form_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^agent\.tools: "), hold_tools("my_tools.TOOLS", tmp_path, FakeBoundary()):
        pass


async def test_an_agent_s_tools_cross_from_its_start_to_its_close(tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(FUNCTIONS + "TOOLS = [search, book]")
    (tmp_path / "my_agent.py").write_text(
        "from my_tools import book, search\nkept = [search]\n"
        "async def answer(text): return kept[0](text) + await book(id='-7')"
    )
    hub, watcher = Hub(), Watcher()
    agent = PythonAgent(config(tmp_path, type="python", endpoint="my_agent:answer", tools="my_tools:TOOLS"), hub)
    await agent.start()
    answer = sys.modules["my_agent"].answer
    got = await agent.ask("Oslo", Crossing("r-0001", chain(watcher)))
    await agent.close()
    assert (got.output, hub.tools) == ("Oslo-7", ("search", "book"))
    assert [(call.name, call.body) for call in watcher.calls] == [
        ("search", b'{"to":"Oslo"}'),
        ("book", b'{"id":"-7"}'),
    ]
    with Crossing("r-0002", chain(watcher)).active():
        assert await answer("x") == "x-7"
    assert len(watcher.calls) == 2


async def test_tools_that_are_not_there_are_the_configs_fault(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text("def answer(text): return text")
    agent = PythonAgent(
        config(tmp_path, type="python", endpoint="my_agent:answer", tools="my_agent:TOOLS"), FakeBoundary()
    )
    before = list(sys.path)
    with pytest.raises(ConfigError, match="there is no 'TOOLS' in my_agent"):
        await agent.start()
    assert sys.path == before
    assert (await agent_without_tools(tmp_path)).output == "x"


async def agent_without_tools(folder: Path) -> Any:
    agent = PythonAgent(config(folder, type="python", endpoint="my_agent:answer"), FakeBoundary())
    await agent.start()
    answer = await agent.ask("x", FakeLine())
    await agent.close()
    return answer
