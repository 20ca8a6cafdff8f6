"""`agent.start` becomes an argument list.

A list is taken as it is. A string is split as a shell would split it; only one that uses the shell's own means (pipes,
redirections, variables, patterns, `A=1 program`) is handed to `/bin/sh -c`. An input never becomes part of a shell
script: there it travels as the script's first argument, and the script is made to say `"$1"` where `{prompt}` stood.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from flakestorm.errors import ConfigError

__all__ = ["PROMPT", "command_line", "takes_prompt"]

PROMPT = "{prompt}"

_SHELL = re.compile(r"[|&;<>()$`*?\[~\n]|^\s*\w+=")


def takes_prompt(start: str | Sequence[str]) -> bool:
    """Whether the input goes into the arguments (and not to standard input)."""
    return PROMPT in start if isinstance(start, str) else any(PROMPT in part for part in start)


def command_line(start: str | Sequence[str], *, prompt: str = "") -> list[str]:
    """The arguments to start a program with.

    Args:
        start: `agent.start`, with `{port}` already filled in.
        prompt: takes the place of `{prompt}`, always within one argument.

    Raises:
        ConfigError: there is nothing to start, or the quotes do not match.
    """
    if isinstance(start, str) and _SHELL.search(start.replace(PROMPT, "")):
        return ["/bin/sh", "-c", _script(start), "sh", prompt]
    try:
        parts = shlex.split(start) if isinstance(start, str) else list(start)
    except ValueError as error:
        raise ConfigError(f"{start!r} cannot be split into arguments: {error}", key="agent.start") from error
    if not parts or not parts[0]:
        raise ConfigError("there is nothing to start: give a program and its arguments", key="agent.start")
    return [part.replace(PROMPT, prompt) for part in parts]


def _script(start: str) -> str:
    """The script with each `{prompt}` as a reference to its first argument, right for the quotes it stands in."""
    done: list[str] = []
    quote = ""
    at = 0
    while at < len(start):
        if start.startswith(PROMPT, at):
            done.append({"": '"$1"', '"': "${1}", "'": "'\"$1\"'"}[quote])
            at += len(PROMPT)
            continue
        char = start[at]
        if char == "\\" and quote != "'":
            done.append(start[at : at + 2])
            at += 2
            continue
        if char in "\"'" and quote in ("", char):
            quote = "" if quote else char
        done.append(char)
        at += 1
    return "".join(done)
