"""The warden's list of groups: what is forgotten is spared, what is watched is killed."""

import asyncio
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
        said = [*(f"watch {program.pid}\n" for program in programs), f"forget {programs[1].pid}\n"]
        shell = await asyncio.create_subprocess_exec("/bin/sh", "-c", warden._SCRIPT, stdin=subprocess.PIPE)
        await shell.communicate("".join(said).encode())
        assert await programs[0].wait() == await programs[2].wait() == -9
        assert programs[1].returncode is None
        programs[1].kill()
        await programs[1].wait()
