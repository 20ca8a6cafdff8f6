"""Programs: what they print, how they end, and that nothing of them stays."""

import asyncio
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from agents_support import HOLD, lifelines
from flakestorm.agents.capture import TAIL_BYTES
from flakestorm.agents.process import Program
from flakestorm.errors import AgentUnreachable

ENV = dict(os.environ)


def python(code: str, folder: Path, **more: object) -> Program:
    return Program([sys.executable, "-c", code], cwd=folder, env={**ENV, **more.pop("env", {})}, **more)


async def ended(program: Program) -> int:
    async with asyncio.timeout(20):
        return await program.wait()


async def test_a_program_runs_where_and_with_what_it_was_given(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['X'], sys.stdin.read()); print('err', file=sys.stderr)"
    program = python(code, tmp_path, env={"X": "1"}, stdin="é\n".encode())
    assert await ended(program) == 0
    assert program.code == 0
    assert program.stdout.data.decode() == f"{tmp_path.resolve()} 1 é\n\n"
    assert program.stderr.data == b"err\n"
    assert program.ending() == "exited with code 0; its last lines:\n    err"


async def test_by_default_there_is_nothing_to_read(tmp_path: Path) -> None:
    program = python("import sys; sys.exit(len(sys.stdin.read()))", tmp_path)
    assert await ended(program) == 0


async def test_a_program_that_prints_much_is_never_blocked(tmp_path: Path) -> None:
    program = python("print('x' * 5_000_000); print('the end')", tmp_path)
    assert await ended(program) == 0
    assert len(program.stdout.data) == TAIL_BYTES
    assert program.last_lines().endswith("    the end")


async def test_the_signal_that_ended_it_is_named(tmp_path: Path) -> None:
    program = python("import os; os.kill(os.getpid(), 9)", tmp_path)
    assert await ended(program) == -9
    assert program.ending() == "was killed by SIGKILL without printing anything"


@pytest.mark.parametrize("ignore_sigterm", [False, True])
async def test_stopping_ends_the_whole_family(tmp_path: Path, ignore_sigterm: bool) -> None:
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        if ignore_sigterm:
            hold = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{hold}"
        parent = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {hold!r}])\n{hold}"
        program = python(parent, tmp_path)
        family = [await lines.next(), await lines.next()]
        assert program.running
        assert program.code is None
        await program.stop(grace_s=0.2 if ignore_sigterm else 20)
        assert not program.running
        assert program.code == (-9 if ignore_sigterm else -15)
        for member in family:
            assert await lines.broken(member)
        await program.stop()  # stopping twice is fine


async def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    async with lifelines() as lines:
        child = HOLD.format(port=lines.port).replace("s.recv", "print('up', flush=True)\ns.recv")
        program = python(
            f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)"
            ".stdout.readline()\n",
            tmp_path,
        )
        orphan = await lines.next()
        assert await ended(program) == 0
        assert await lines.broken(orphan)


@pytest.mark.parametrize("how", ["ends", "is stopped", "is killed"])
async def test_what_went_into_a_session_of_its_own_ends_with_it(tmp_path: Path, how: str) -> None:
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        code = (
            f"import subprocess, sys, socket\n"
            f"subprocess.Popen([sys.executable, '-c', {hold!r}], start_new_session=True, stdout=subprocess.DEVNULL)\n"
            f"socket.create_connection(('127.0.0.1', {lines.port})).recv(1)"
        )
        program = python(code, tmp_path, env={"FLAKESTORM_RUN": secrets.token_urlsafe()})
        family = [await lines.next(), await lines.next()]
        if how == "is stopped":
            await program.stop()
        elif how == "is killed":
            program.kill()
        else:
            os.kill(program.pid, 15)
        await ended(program)
        for member in family:
            assert await lines.broken(member)


async def test_output_held_open_from_outside_the_group_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        code = (
            f"import subprocess, sys, socket\n"
            f"p = subprocess.Popen([sys.executable, '-c', {hold!r}], start_new_session=True)\n"
            f"print(p.pid, flush=True)\n"
            f"socket.create_connection(('127.0.0.1', {lines.port})).recv(1)"
        )
        program = python(code, tmp_path)
        await lines.next()
        await lines.next()
        program.kill()
        assert await ended(program) == -9
        os.kill(int(program.stdout.data), 9)


async def test_cancelling_a_stop_kills_at_once(tmp_path: Path) -> None:
    async with lifelines() as lines:
        stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + HOLD.format(port=lines.port)
        program = python(stubborn, tmp_path)
        held = await lines.next()
        stopping = asyncio.create_task(program.stop(grace_s=3600))
        await asyncio.sleep(0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        assert await lines.broken(held)
        assert await ended(program) == -9


async def test_a_cancelled_waiter_does_not_disturb_the_next(tmp_path: Path) -> None:
    program = python("import sys; sys.stdin.read()", tmp_path, stdin=b"")
    waiting = asyncio.create_task(program.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    assert await ended(program) == 0


@pytest.mark.parametrize("how", ["ends", "is killed"])
async def test_no_program_outlives_flakestorm(tmp_path: Path, how: str) -> None:
    """Neither when its interpreter ends without stopping anything, nor when it is killed."""
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        code = (
            "import os, socket, sys\nfrom pathlib import Path\nfrom flakestorm.agents.process import Program\n"
            f"Program([sys.executable, '-c', {hold!r}], cwd=Path('.'), env=dict(os.environ))\n"
            "print('started', flush=True)\nsys.stdin.readline()\n"
        )
        outer = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        held = await lines.next()
        if how == "is killed":
            outer.kill()
        await outer.communicate(b"\n")
        assert await lines.broken(held)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["no-such-program-at-all"], "there is no program 'no-such-program-at-all'"),
        (["./plain.txt"], "not executable"),
        (["echo", "a\0b"], "null byte"),
        (
            ["echo", "x" * 5_000_000],
            "Argument list too long: the longest argument has 5,000,000 bytes, .*takes 131,071",
        ),
    ],
)
def test_what_cannot_be_started_is_said(tmp_path: Path, argv: list[str], message: str) -> None:
    (tmp_path / "plain.txt").write_text("")
    with pytest.raises(AgentUnreachable, match=message):
        Program(argv, cwd=tmp_path, env=ENV)


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(AgentUnreachable, match=r"nowhere does not exist \(agent\.cwd\)"):
        Program(["echo"], cwd=tmp_path / "nowhere", env=ENV)


async def test_python_means_this_one_where_path_has_none(tmp_path: Path) -> None:
    program = Program(["python", "-c", "import sys; print(sys.executable)"], cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert await ended(program) == 0
    assert program.stdout.data.decode().strip() == sys.executable
