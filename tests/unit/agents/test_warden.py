"""The warden's list of groups: what is forgotten is spared, what is watched is killed."""

import asyncio
import os
import secrets
import subprocess
import sys

from agents_support import HOLD, lifelines
from flakestorm.agents import warden


async def test_groups_left_over_are_killed_and_forgotten_ones_spared() -> None:
    async with lifelines() as lines:
        hold = HOLD.format(port=lines.port)
        programs = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", hold, start_new_session=True) for _ in range(3)
        ]
        for _ in programs:
            await lines.next()
        said = [*(f"watch {program.pid}:\n" for program in programs), f"forget {programs[1].pid}:\n"]
        shell = await asyncio.create_subprocess_exec("/bin/sh", "-c", warden._SCRIPT, stdin=subprocess.PIPE)
        await shell.communicate("".join(said).encode())
        assert await programs[0].wait() == await programs[2].wait() == -9
        assert programs[1].returncode is None
        programs[1].kill()
        await programs[1].wait()


async def test_what_left_the_group_is_known_by_its_token() -> None:
    token = secrets.token_urlsafe()
    async with lifelines() as lines:
        programs = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                HOLD.format(port=lines.port),
                env={**os.environ, "FLAKESTORM_RUN": carried},
                start_new_session=True,
            )
            for carried in (token, f"{token}x")
        ]
        for _ in programs:
            await lines.next()
        gone = await asyncio.create_subprocess_exec("true", start_new_session=True)
        await gone.wait()
        shell = await asyncio.create_subprocess_exec("/bin/sh", "-c", warden._SCRIPT, stdin=subprocess.PIPE)
        await shell.communicate(f"watch {gone.pid}:{token}\n".encode())
        assert await programs[0].wait() == -9
        assert programs[1].returncode is None
        programs[1].kill()
        await programs[1].wait()


async def test_one_that_was_about_to_be_started_is_known_by_its_token_alone() -> None:
    token, spared = secrets.token_urlsafe(), secrets.token_urlsafe()
    async with lifelines() as lines:
        programs = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                HOLD.format(port=lines.port),
                env={**os.environ, "FLAKESTORM_RUN": carried},
                start_new_session=True,
            )
            for carried in (token, spared)
        ]
        for _ in programs:
            await lines.next()
        shell = await asyncio.create_subprocess_exec("/bin/sh", "-c", warden._SCRIPT, stdin=subprocess.PIPE)
        await shell.communicate(f"watch :{spared}\nwatch :{token}\nforget :{spared}\n".encode())
        assert await programs[0].wait() == -9
        assert programs[1].returncode is None
        programs[1].kill()
        await programs[1].wait()
