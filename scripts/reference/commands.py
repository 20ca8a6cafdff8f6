"""docs/reference/cli.md: every command and option; docs/reference/exit-codes.md: what they exit with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

import click

from flakestorm.cli import main as entry
from flakestorm.cli.main import COMMANDS, cli
from flakestorm.cli.options import FORMATS

from .markdown import cell, code, table

__all__ = ["exit_codes", "page"]

_GLOBAL = ("config", "quiet", "output", "format", "seed", "trials", "concurrency", "executor", "no_color")
_INTRO = """# Commands

`flakestorm COMMAND --help` says the same. `eval "$(flakestorm completion bash)"` (or `zsh`, `fish`) completes commands
and options in your shell. What commands exit with is in [exit codes](exit-codes.md).
"""
_EXITS = """# Exit codes

They decide builds, so they mean the same everywhere: {all}

An `inconclusive` verdict is never a 0. Where a command's codes mean something of its own, its help says so:
"""


def page() -> str:
    """The page of commands."""
    commands = dict(_commands())
    parts = [_INTRO, table(("command", "does"), ((f"[`{name}`](#{_anchor(name)})", cell(COMMANDS[name][1])) for name in
                                                 COMMANDS))]  # fmt: skip
    shared = [param for param in cli.params if isinstance(param, click.Option) and param.name in _GLOBAL]
    parts += ["## Options of every command", "They may stand before or behind the command's name.", _options(shared)]
    for name, command in commands.items():
        parts.append(f"## flakestorm {name}")
        parts.append(f"```text\n{_usage(name, command)}\n```")
        parts.append(_help(command.help or ""))
        own = [p for p in command.params if isinstance(p, click.Option) and p.name not in _GLOBAL]
        if own:
            parts.append(_options(own))
        for param in command.params:
            forms = getattr(param.type, "choices", None)
            if param.name == "format" and forms and tuple(forms) != FORMATS:
                parts.append(f"`--format` is one of {', '.join(f'`{form}`' for form in forms)}.")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def exit_codes() -> str:
    """The page of exit codes."""
    meanings = (entry.__doc__ or "").split("\n\n")[1]
    rows = []
    for name, command in _commands():
        words = re.sub(r"\s+", " ", (command.help or "").replace("\b", ""))
        told = [line for line in re.split(r"(?<=\.) ", words) if re.search(r"\b[Ee]xits?\b|^Fails on", line)]
        if told:
            rows.append((f"[`{name}`](cli.md#{_anchor(name)})", cell(" ".join(told).removeprefix("Exit code: "))))
    return _EXITS.format(all=meanings) + "\n" + table(("command", "exits"), rows) + "\n"


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, with its full name, groups before what is in them."""
    context = click.Context(cli, info_name="flakestorm")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield from _below(name, command)


def _below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for word, inner in sorted(command.commands.items()):
            yield from _below(f"{name} {word}", inner)


def _usage(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"flakestorm {name}")
    pieces = [piece.replace("[ARG]...", "[ARG ...]") for piece in command.collect_usage_pieces(context)]
    return " ".join([f"flakestorm {name}", *pieces])


def _help(text: str) -> str:
    """Click's help text: paragraphs, and what stands below a `\\b` as it is."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.lstrip().startswith("\b"):
            parts.append("```text\n" + cleandoc("\n" + block.lstrip().removeprefix("\b").strip("\n")) + "\n```")
        else:
            parts.append(cell(block))
    return "\n\n".join(parts)


def _options(options: list[click.Option]) -> str:
    rows = []
    for option in options:
        names = ", ".join(option.opts) + "".join(f" / {name}" for name in option.secondary_opts)
        value = "" if option.is_flag or option.count else f" {option.metavar or _value(option)}"
        rows.append((code(f"{names}{value}"), cell(option.help or "") + _more(option)))
    return table(("option", "does"), rows)


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    if isinstance(option.type, click.Path | click.File):
        return "FILE"
    return "NUMBER" if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType) else "TEXT"


def _more(option: click.Option) -> str:
    kind = option.type
    said = []
    if isinstance(kind, click.IntRange | click.FloatRange):
        low, high = kind.min, kind.max
        if low is not None and high is not None and high < 2**31:
            told = f"{low:g} to {high:g}" if not kind.min_open else f"above {low:g}, to {high:g}"
            said += [] if told in (option.help or "") else [told]
        elif low and low > -(2**31):
            said.append(f"from {low:g}")
    if option.multiple:
        said.append("may be given several times")
    if option.required:
        said.append("required")
    return f" ({'; '.join(said)})" if said else ""


def _anchor(name: str) -> str:
    return f"flakestorm-{name.replace(' ', '-')}"
