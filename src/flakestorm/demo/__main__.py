"""The demo's world for agents of your own: the scripted model, the flight search and the booking desk.

    python -m flakestorm.demo                        a shell in which they are there
    python -m flakestorm.demo COMMAND [ARG ...]      or one command
    python -m flakestorm.demo --agent agent.py       with a copy of the demo's agent to work on

The variables that an agent needs are set for it: OPENAI_BASE_URL, OPENAI_API_KEY, FLAKESTORM_DEMO_TOOLS_URL. The world
ends with the shell or the command, whose exit code is passed on.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from flakestorm.demo.run import serve
from flakestorm.errors import Misuse

AGENT = Path(__file__).with_name("agent.py")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m flakestorm.demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", type=Path, metavar="FILE", help="write the demo's agent to this file")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what is run; your shell by default")
    given = parser.parse_args()
    try:
        return run(given.agent, given.command)
    except Misuse as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def run(agent: Path | None, command: list[str]) -> int:
    """Serve the world for as long as the command runs.

    Raises:
        Misuse: the file is there already, or cannot be written; no such command; the extra `demo` is missing.
    """
    if agent is not None:
        if agent.exists():
            raise Misuse(f"{agent} exists already; remove it, or leave out --agent to go on with it")
        try:
            shutil.copyfile(AGENT, agent)
        except OSError as error:
            raise Misuse(f"{agent} cannot be written: {error.strerror}") from error
    words = command or [os.environ.get("SHELL", "/bin/sh")]
    with serve() as world:
        variables = {
            "OPENAI_BASE_URL": world["FLAKESTORM_DEMO_MODEL_URL"],
            "OPENAI_API_KEY": world["FLAKESTORM_DEMO_API_KEY"],
            "FLAKESTORM_DEMO_TOOLS_URL": world["FLAKESTORM_DEMO_TOOLS_URL"],
        }
        if not command:
            print("The demo's model and tools are there until you leave this shell with `exit`.", flush=True)
        try:
            return subprocess.run(words, env={**os.environ, **variables}, check=False).returncode  # noqa: S603 - the user's
        except OSError as error:
            raise Misuse(f"{words[0]} cannot be run: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
