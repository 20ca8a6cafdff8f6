"""Python agents: called where they live, on their line, and never able to take flakestorm down."""

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agents_support import FakeBoundary, FakeLine, config, current_line, error
from flakestorm.agents.python import PythonAgent
from flakestorm.core.answer import AgentError, Answer
from flakestorm.errors import AgentUnreachable, ConfigError

HEAD = "import asyncio, sys, threading, time\nfrom agents_support import current_line\n"


async def ask(folder: Path, code: str, prompt: str = "hello", *, at: str = "my_agent:answer", **agent: Any) -> Answer:
    (folder / "my_agent.py").write_text(HEAD + code)
    made = PythonAgent(config(folder, type="python", endpoint=at, **agent), FakeBoundary())
    await made.start()
    try:
        return await made.ask(prompt, FakeLine("r-7"))
    finally:
        await made.close()


@pytest.mark.parametrize(
    "code",
    [
        "def answer(text): return text.upper() + current_line.get()",
        "async def answer(text): return text.upper() + current_line.get()",
        "async def later(text): return text.upper() + current_line.get()\ndef answer(text): return later(text)",
        "class A:\n  def __call__(self, text): return text.upper() + current_line.get()\nanswer = A()",
        "class A:\n  async def __call__(self, text): return text.upper() + current_line.get()\nanswer = A()",
        "class A:\n  async def invoke(self, text): return text.upper() + current_line.get()\nanswer = A()",
    ],
)
async def test_every_kind_of_callable_is_asked_on_its_line(tmp_path: Path, code: str) -> None:
    answer = await ask(tmp_path, code)
    assert answer == Answer("HELLOr-7", latency_ms=answer.latency_ms)
    assert current_line.get() is None


async def test_a_method_deep_in_a_module(tmp_path: Path) -> None:
    code = "class A:\n  class B:\n    @staticmethod\n    def run(text): return text * 2\n"
    assert (await ask(tmp_path, code, "ab", at="my_agent:A.B.run")).output == "abab"


async def test_a_blocking_agent_does_not_block_the_loop(tmp_path: Path) -> None:
    """Eight at once meet at a barrier that only opens when all have come."""
    code = "gate = threading.Barrier(8)\ndef answer(text):\n    gate.wait(20)\n    return text + current_line.get()"
    (tmp_path / "my_agent.py").write_text(HEAD + code)
    agent = PythonAgent(config(tmp_path, type="python", endpoint="my_agent:answer"), FakeBoundary())
    await agent.start()
    answers = await asyncio.gather(*(agent.ask(f"{n} ", FakeLine(f"r-{n}")) for n in range(8)))
    await agent.close()
    assert [answer.output for answer in answers] == [f"{n} r-{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("code", "path", "output"),
    [
        ("def answer(text): return {'output': text, 'steps': 3}", None, "hello"),
        ("def answer(text): return {'data': [{'text': text}]}", "data.0.text", "hello"),
        ("def answer(text): return None", None, ""),
        ("def answer(text): return 42", None, "42"),
        ("def answer(text): return text.encode()", None, "hello"),
    ],
)
async def test_what_it_returns_becomes_text(tmp_path: Path, code: str, path: str | None, output: str) -> None:
    assert (await ask(tmp_path, code, response_path=path)).output == output


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("def answer(text): raise ValueError('no such city')", "crash", "ValueError: no such city"),
        ("async def answer(text): raise ValueError('no such city')", "crash", "my_agent.py:3 in answer: "),
        ("def answer(text): sys.exit(3)", "crash", "SystemExit: 3"),
        ("async def answer(text): sys.exit(3)", "crash", "SystemExit: 3"),
        ("async def answer(text): raise asyncio.CancelledError", "crash", "CancelledError"),
        ("def answer(text): raise KeyboardInterrupt", "crash", "KeyboardInterrupt"),
        ("async def answer(text): raise KeyboardInterrupt", "crash", "KeyboardInterrupt"),
        ("def answer(text): raise asyncio.CancelledError", "crash", "CancelledError"),
        ("def answer(text): raise TimeoutError('the model')", "crash", "TimeoutError: the model"),
        ("async def answer(text): raise TimeoutError('the model')", "crash", "TimeoutError: the model"),
        ("def answer(text): raise StopIteration", "crash", "StopIteration"),
        ("def answer(text): return {'error': 'no key'}", "error", "no key"),
        ("def answer(text): return {'data': 1}", "unreadable", "data"),
        ("def answer(text): yield text", "unreadable", "generator"),
        ("async def answer(text): yield text", "unreadable", "generator"),
    ],
)
async def test_what_goes_wrong_is_the_agents_own_error(tmp_path: Path, code: str, kind: str, said: str) -> None:
    got = error(await ask(tmp_path, code))
    assert got.kind == kind
    assert said in got.message
    assert "flakestorm/agents" not in got.message


async def test_a_slow_async_agent_is_cancelled(tmp_path: Path) -> None:
    code = "ended = []\nasync def answer(text):\n  try: await asyncio.Event().wait()\n  finally: ended.append(1)"
    (tmp_path / "my_agent.py").write_text(HEAD + code)
    agent = PythonAgent(config(tmp_path, type="python", endpoint="my_agent:answer", timeout=20), FakeBoundary())
    await agent.start()
    answer = await agent.ask("x", FakeLine())
    ended = sys.modules["my_agent"].ended
    await agent.close()
    assert answer.error == AgentError("timeout", "no answer within 20 ms")
    assert ended == [1]


async def test_a_slow_sync_agent_is_left_behind(tmp_path: Path) -> None:
    code = "go = threading.Event()\ndef answer(text):\n  go.wait(20)\n  return text"
    (tmp_path / "my_agent.py").write_text(HEAD + code)
    agent = PythonAgent(config(tmp_path, type="python", endpoint="my_agent:answer", timeout=20), FakeBoundary())
    await agent.start()
    answer = await agent.ask("x", FakeLine())
    go = sys.modules["my_agent"].go
    assert answer.error == AgentError("timeout", "no answer within 20 ms")
    left = [thread for thread in threading.enumerate() if thread.name == "flakestorm-call"]
    assert [thread.daemon for thread in left] == [True]
    go.set()
    left[0].join(20)
    await agent.close()


async def test_an_async_agent_that_blocks_is_ended_in_time_and_holds_up_nobody(tmp_path: Path) -> None:
    """The first run blocks the agents' loop for good; the second had not begun and is asked all the same."""
    code = (
        "go = threading.Event()\nasync def answer(text):\n  if text == 'block': go.wait(20)\n"
        "  return current_line.get()"
    )
    (tmp_path / "my_agent.py").write_text(HEAD + code)
    agent = PythonAgent(config(tmp_path, type="python", endpoint="my_agent:answer", timeout=100), FakeBoundary())
    await agent.start()
    blocked, quick = await asyncio.gather(agent.ask("block", FakeLine("r-1")), agent.ask("quick", FakeLine("r-2")))
    sys.modules["my_agent"].go.set()
    await agent.close()
    assert blocked.error == AgentError("timeout", "no answer within 100 ms")
    assert (quick.output, quick.error) == ("r-2", None)


async def test_runs_and_resets_of_an_async_agent_share_one_loop(tmp_path: Path) -> None:
    code = (
        "loops = []\nasync def answer(text):\n  loops.append(asyncio.get_running_loop())\n  return text\n"
        "async def clear(): loops.append(asyncio.get_running_loop())"
    )
    (tmp_path / "my_agent.py").write_text(HEAD + code)
    agent = PythonAgent(
        config(tmp_path, type="python", endpoint="my_agent:answer", reset_function="my_agent:clear"), FakeBoundary()
    )
    await agent.start()
    await agent.ask("a", FakeLine())
    await agent.ask("b", FakeLine())
    loops = sys.modules["my_agent"].loops
    await agent.close()
    assert (len(loops), len(set(loops))) == (4, 1)
    assert asyncio.get_running_loop() not in loops


async def test_its_environment_is_set_while_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_BEFORE", "old")
    monkeypatch.delenv("NEW_HERE", raising=False)
    code = "import os\nat_import = os.environ['NEW_HERE']\ndef answer(t): return at_import + os.environ['SET_BEFORE']"
    answer = await ask(tmp_path, code, env={"SET_BEFORE": "new", "NEW_HERE": "1"})
    assert answer.output == "1new"
    assert os.environ["SET_BEFORE"] == "old"
    assert "NEW_HERE" not in os.environ
    with pytest.raises(ConfigError):
        await ask(tmp_path, code, at="my_agent:nothing", env={"SET_BEFORE": "new", "NEW_HERE": "1"})
    assert os.environ["SET_BEFORE"] == "old"


@pytest.mark.parametrize("key", ["start", "ready", "cwd"])
def test_what_is_for_launched_agents_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"agent\.{key}: type python is imported"):
        PythonAgent(config(tmp_path, type="python", endpoint="my_agent:answer", **{key: "x"}), FakeBoundary())


async def test_cancelling_a_run_is_not_the_agents_crash(tmp_path: Path) -> None:
    code = "started = threading.Event()\nasync def answer(text):\n  started.set()\n  await asyncio.Event().wait()"
    (tmp_path / "my_agent.py").write_text(HEAD + code)
    agent = PythonAgent(config(tmp_path, type="python", endpoint="my_agent:answer"), FakeBoundary())
    await agent.start()
    run = asyncio.create_task(agent.ask("x", FakeLine()))
    assert await asyncio.to_thread(sys.modules["my_agent"].started.wait, 20)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await agent.close()


async def test_it_is_reset_before_each_run(tmp_path: Path) -> None:
    code = "seen = []\ndef answer(text):\n  seen.append(text)\n  return ' '.join(seen)\nasync def clear(): seen.clear()"
    (tmp_path / "my_agent.py").write_text(HEAD + code)
    agent = PythonAgent(
        config(tmp_path, type="python", endpoint="my_agent:answer", reset_function="my_agent:clear"), FakeBoundary()
    )
    await agent.start()
    outputs = [(await agent.ask(text, FakeLine())).output for text in ("a", "b")]
    await agent.close()
    assert outputs == ["a", "b"]


async def test_a_reset_that_fails_leaves_the_run_unjudged(tmp_path: Path) -> None:
    code = "def answer(text): return text\ndef clear(): raise OSError('locked')"
    got = error(await ask(tmp_path, code, reset_function="my_agent:clear"))
    assert got.kind == "unreachable"
    assert got.message.startswith("reset failed: my_agent:clear raised OSError: locked")


@pytest.mark.parametrize(
    ("code", "at", "said"),
    [
        ("import no_such_library", "my_agent:answer", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("sys.exit('no key')", "my_agent:answer", "SystemExit: no key"),
        ("def answer(:", "my_agent:answer", "SyntaxError"),
    ],
)
async def test_what_cannot_be_imported_is_unreachable(tmp_path: Path, code: str, at: str, said: str) -> None:
    before = list(sys.path)
    with pytest.raises(AgentUnreachable, match=said):
        await ask(tmp_path, code, at=at)
    assert sys.path == before


@pytest.mark.parametrize(
    ("code", "at", "said"),
    [
        ("", "my_agent:answer", "there is no 'answer' in my_agent"),
        ("def answer(t): return t", "my_agent:anwser", "there is no 'anwser' in .*; did you mean 'answer'"),
        ("class A: pass\nanswer = A()", "my_agent:answer", "of type A and cannot be called"),
        ("class answer: pass", "my_agent:answer", "is a class"),
        ("", "no_such_agent:answer", "the module 'no_such_agent' cannot be imported: it is neither in"),
        ("", "my_agnet:answer", "did you mean 'my_agent'"),
    ],
)
async def test_what_is_not_there_is_the_configs_fault(tmp_path: Path, code: str, at: str, said: str) -> None:
    before = list(sys.path)
    with pytest.raises(ConfigError, match=rf"agent\.endpoint: .*{said}"):
        await ask(tmp_path, code, at=at)
    assert sys.path == before


async def test_an_endpoint_of_another_form_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="module:function"):
        await ask(tmp_path, "", at="my_agent.answer")
