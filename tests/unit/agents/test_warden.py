"""The warden's list of groups: what is forgotten is spared, what is watched is killed."""

import asyncio
import os
import secrets
import subprocess
import sys

from agents_support import HOLD, Lifelines, lifelines
from flakestorm.agents import warden


async def started(lines: Lifelines, *tokens: str | None) -> list[asyncio.subprocess.Process]:
    """Programs in groups of their own, each with its token in the environment."""
    programs = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            HOLD.format(port=lines.port),
            env=os.environ if token is None else {**os.environ, "FLAKESTORM_RUN": token},
            start_new_session=True,
        )
        for token in tokens
    ]
    for _ in programs:
        await lines.next()
    return programs


async def told(lines: str) -> None:
    """A warden reads this, and its end."""
    shell = await asyncio.create_subprocess_exec("/bin/sh", "-c", warden._SCRIPT, stdin=subprocess.PIPE)
    await shell.communicate(lines.encode())


async def spared(program: asyncio.subprocess.Process) -> None:
    assert program.returncode is None
    program.kill()
    await program.wait()


async def test_groups_left_over_are_killed_and_forgotten_ones_spared() -> None:
    async with lifelines() as lines:
        programs = await started(lines, None, None, None)
        said = [*(f"watch {program.pid}:\n" for program in programs), f"forget {programs[1].pid}:\n"]
        await told("".join(said))
        assert await programs[0].wait() == await programs[2].wait() == -9
        await spared(programs[1])


async def test_what_left_the_group_is_known_by_its_token() -> None:
    token = secrets.token_urlsafe()
    async with lifelines() as lines:
        programs = await started(lines, token, f"{token}x")
        gone = await asyncio.create_subprocess_exec("true", start_new_session=True)
        await gone.wait()
        await told(f"watch {gone.pid}:{token}\n")
        assert await programs[0].wait() == -9
        await spared(programs[1])


async def test_one_that_was_about_to_be_started_is_known_by_its_token_alone() -> None:
    token, other = secrets.token_urlsafe(), secrets.token_urlsafe()
    async with lifelines() as lines:
        programs = await started(lines, token, other)
        await told(f"watch :{other}\nwatch :{token}\nforget :{other}\n")
        assert await programs[0].wait() == -9
        await spared(programs[1])
