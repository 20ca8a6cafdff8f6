"""Command agents: one process per input, and its answer."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_support import HOLD, FakeBoundary, FakeLine, config, error, lifelines
from flakestorm.agents import command
from flakestorm.agents.command import CommandAgent
from flakestorm.agents.process import ARGUMENT_LIMIT_BYTES
from flakestorm.core.answer import AgentError, Answer
from flakestorm.errors import ConfigError

NASTY = "say \"hi\" 'there' $HOME `id`; {braces}\nsecond line \\ é \U0001f600"


def made(folder: Path, start: str | list[str], **agent: Any) -> tuple[CommandAgent, FakeBoundary]:
    boundary = FakeBoundary()
    return CommandAgent(config(folder, type="command", start=start, **agent), boundary), boundary


async def ask(folder: Path, start: str | list[str], prompt: str = "hello", **agent: Any) -> Answer:
    program, boundary = made(folder, start, **agent)
    await program.start()
    try:
        return await program.ask(prompt, FakeLine())
    finally:
        await program.close()
        assert all(channel.closed and channel.runs == ["r-0001"] for channel in boundary.channels)


def python(code: str, *more: str) -> list[str]:
    return [sys.executable, "-c", code, *more]


COPY = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
FIRST = "import sys; sys.stdout.buffer.write(sys.argv[1].encode()); assert sys.stdin.read() == ''"


@pytest.mark.parametrize(
    "start",
    [python(COPY), "cat", "cat | cat", python(FIRST, "{prompt}"), "printf %s {prompt}", "printf %s '{prompt}' && true"],
)
async def test_the_input_arrives_unharmed(tmp_path: Path, start: str | list[str]) -> None:
    answer = await ask(tmp_path, start, NASTY)
    assert answer == Answer(NASTY, latency_ms=answer.latency_ms, status=0)
    assert answer.latency_ms > 0


async def test_an_input_larger_than_a_pipe(tmp_path: Path) -> None:
    assert len((await ask(tmp_path, "cat", "x" * 3_000_000)).output) == 3_000_000


async def test_an_agent_that_does_not_read_its_input(tmp_path: Path) -> None:
    assert (await ask(tmp_path, "echo hi", "x" * 3_000_000)).output == "hi"


@pytest.mark.parametrize(
    ("printed", "output"), [("a\\n", "a"), ("a\\r\\n", "a"), ("a\\n\\n", "a\n"), (" a ", " a "), ("", "")]
)
async def test_only_the_final_line_break_is_removed(tmp_path: Path, printed: str, output: str) -> None:
    assert (await ask(tmp_path, f"printf '{printed}'")).output == output


async def test_a_response_path_reads_json(tmp_path: Path) -> None:
    reply = python('print(\'{"answer": {"text": "hi"}}\')')
    assert (await ask(tmp_path, reply, response_path="answer.text")).output == "hi"
    assert (await ask(tmp_path, reply)).output == '{"answer": {"text": "hi"}}'
    assert (await ask(tmp_path, reply, response_path="$")).output == '{"answer": {"text": "hi"}}'
    assert error(await ask(tmp_path, reply, response_path="answer.body")).kind == "unreadable"
    assert error(await ask(tmp_path, "echo hi", response_path="answer")).kind == "unreadable"


async def test_an_exit_code_is_a_crash_with_its_last_lines(tmp_path: Path) -> None:
    answer = await ask(tmp_path, python("print('half an answer'); raise SystemExit('no model')"))
    assert error(answer) == AgentError("crash", "the command exited with code 1; its last lines:\n    no model")
    assert answer.status == 1
    assert error(await ask(tmp_path, "kill -SEGV $$")).message.startswith("the command was killed by SIGSEGV")


async def test_running_out_of_time_kills_the_whole_group(tmp_path: Path) -> None:
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
        answer, child = await asyncio.gather(ask(tmp_path, python(code), timeout=1000), lines.next())
        assert error(answer) == AgentError("timeout", "the command did not end within 1000 ms")
        assert await lines.broken(child)


async def test_cancelling_a_run_leaves_no_process(tmp_path: Path) -> None:
    async with lifelines() as lines:
        run = asyncio.create_task(ask(tmp_path, python(HOLD.format(port=lines.port))))
        held = await lines.next()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await lines.broken(held)


@pytest.mark.parametrize("start", ["no-such-program-at-all", ["no-such-program-at-all", "{prompt}"]])
async def test_a_missing_program_is_unreachable(tmp_path: Path, start: str | list[str]) -> None:
    got = error(await ask(tmp_path, start))
    assert got.kind == "unreachable"
    assert "there is no program 'no-such-program-at-all'" in got.message


@pytest.mark.parametrize("prompt", ["a\0b", "x" * 5_000_000])
async def test_an_input_that_cannot_be_an_argument_is_said(tmp_path: Path, prompt: str) -> None:
    assert error(await ask(tmp_path, ["echo", "{prompt}"], prompt)).kind == "unreachable"


async def test_each_run_has_a_channel_and_an_environment_of_its_own(tmp_path: Path) -> None:
    code = "import os; print(os.environ['FLAKESTORM_RUN'], os.environ['GIVEN'], os.environ['MINE'], os.getcwd())"
    (tmp_path / "sub").mkdir()
    agent, boundary = made(tmp_path, python(code), env={"GIVEN": "by the agent block", "MINE": "1"}, cwd="sub")
    await agent.start()
    answers = await asyncio.gather(*(agent.ask("x", FakeLine(f"r-{n}")) for n in range(3)))
    await agent.close()
    where = (tmp_path / "sub").resolve()
    assert [a.output for a in answers] == [f"token-{n} by the channel 1 {where}" for n in range(3)]
    assert [channel.runs for channel in boundary.channels] == [["r-0"], ["r-1"], ["r-2"]]
    assert all(channel.closed for channel in boundary.channels)
    assert boundary.envs[0]["GIVEN"] == "by the agent block"


async def test_too_much_output_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "OUTPUT_LIMIT_BYTES", 2**20)
    answer = await ask(tmp_path, python("print('x' * 2_000_000)"))
    assert error(answer) == AgentError("unreadable", "the command printed more than 1 MB")


async def test_it_is_reset_before_each_run(tmp_path: Path) -> None:
    (tmp_path / "state_of_it.py").write_text(
        "from pathlib import Path\ndef clear(): Path(__file__).with_name('n').unlink()"
    )
    (tmp_path / "n").write_text("")
    agent, _ = made(tmp_path, "echo x >> n; cat n", reset_function="state_of_it:clear")
    await agent.start()
    answers = await asyncio.gather(*(agent.ask("x", FakeLine()) for _ in range(3)))
    await agent.close()
    assert [answer.output for answer in answers] == ["x"] * 3


@pytest.mark.parametrize("start", ["printf %s {prompt}", ["printf", "%s", "{prompt}"], "printf %s {prompt} | cat"])
async def test_an_input_that_is_too_long_for_an_argument_says_the_way_out(tmp_path: Path, start: Any) -> None:
    fits = ARGUMENT_LIMIT_BYTES - 1
    assert (await ask(tmp_path, start, "x" * fits)).output == "x" * fits
    answer = await ask(tmp_path, start, "x" * (fits + 1))
    assert answer.error is not None
    assert answer.error.kind == "unreachable"
    assert "the longest argument has 131,072 bytes" in answer.error.message
    assert "The input has 131,072 bytes: leave {prompt} out of agent.start" in answer.error.message
    assert (await ask(tmp_path, "cat", "x" * (fits + 1))).output == "x" * (fits + 1)


async def test_a_missing_folder_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "somewhere").mkdir()
    said = r"agent\.cwd: the folder .*/nowhere does not exist; did you mean 'somewhere'\?"
    with pytest.raises(ConfigError, match=said):
        await ask(tmp_path, "cat", cwd="nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"agent\.cwd: .*/file is a file"):
        await ask(tmp_path, "cat", cwd="file")


def test_quotes_that_do_not_match_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be split"):
        made(tmp_path, "cat 'x")
