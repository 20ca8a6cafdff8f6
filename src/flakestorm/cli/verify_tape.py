"""`flakestorm verify-tape`: does the agent do the same again?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.trust import approval, trust_option
from flakestorm.errors import Misuse

if TYPE_CHECKING:
    from flakestorm.api.verifying import Verified

__all__ = ["verify_tape"]


@click.command(
    "verify-tape",
    context_settings={"allow_interspersed_args": False},
    short_help="Replay a tape and prove that the agent does the same again.",
)
@global_options
@click.option(
    "--match", "mode", type=click.Choice(["renamed", "strict", "scored"]), help="How requests are compared (renamed)."
)
@trust_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED, required=True, metavar="TAPE [-- COMMAND [ARG]...]")
def verify_tape(options: Globals, mode: str | None, trusted: bool, words: tuple[str, ...]) -> int:
    """Run what was recorded again, answered by the tape alone, and compare every request, their order and the output.

    Runs the command that the tape names, where it was recorded, or COMMAND here. What a tape names that is not known to
    be yours is not run, unless you say so: at the question (on a terminal), or with --trust-tape.

    Exit code: 0 equal, 1 different, 2 the tape is damaged or not run, 3 nothing to verify.
    """
    given, tape, command = _split(words)
    options, mode, trusted = _with(options, given), given.get("--match", mode), trusted or "--trust-tape" in given
    from flakestorm.api import load
    from flakestorm.api.verifying import verify
    from flakestorm.cli.record import named_tools
    from flakestorm.tape.match import MODES

    configured = options.config is not None or options.config_path.exists()
    project = load(options.config_path) if configured else None
    boundary = None if project is None else project.config.boundary
    mode = mode or (boundary.match if boundary is not None else None)
    live = boundary.allow_live if boundary is not None else False
    verified = verify(
        tape,
        command,
        project=project,
        mode=next((each for each in MODES if each == mode), None),
        allow_live=live,
        tools=named_tools(None if project is None else project.config),
        approve=approval(trusted=trusted),
    )
    _print(options, tape, verified)
    return verified.exit_code


def _split(words: tuple[str, ...]) -> tuple[dict[str, str], Path, tuple[str, ...]]:
    """The tape, options that follow it, and the command after `--`."""
    tape, rest = words[0], list(words[1:])
    given: dict[str, str] = {}
    names = {"-c": "config", "--config": "config", "-o": "output", "--output": "output", "--format": "format"}
    while rest and rest[0] != "--" and rest[0].startswith("-"):
        word = rest.pop(0)
        name, eq, value = word.partition("=")
        if name in ("-q", "--quiet"):
            given["quiet"] = "1"
        elif word == "--trust-tape":
            given[word] = "1"
        elif name == "--match" or name in names:
            if not eq and not rest:
                raise Misuse(f"{name} needs a value")
            given[names.get(name, name)] = value if eq else rest.pop(0)
        else:
            raise click.UsageError(f"No such option: {name}; a command goes after --")
    if rest[:1] == ["--"]:
        del rest[0]
    return given, Path(tape), tuple(rest)


def _with(options: Globals, given: dict[str, str]) -> Globals:
    changes: dict[str, Any] = {name: Path(given[name]) for name in ("config", "output") if name in given}
    if "format" in given:
        changes["format"] = given["format"]
    if "quiet" in given:
        changes["quiet"] = True
    return options._replace(**changes)


def _print(options: Globals, tape: Path, verified: Verified) -> None:
    if options.format == "json":
        import orjson

        from flakestorm.cli.tapes import _put

        document = {
            "format": "flakestorm-verify/1",
            "tape": str(tape),
            "equal": verified.exit_code == 0,
            "exit_code": verified.exit_code,
            "recorded": verified.recorded,
            "requests": dict(verified.requests),
            "differences": list(verified.differences),
            "digest": {"tape": verified.digests[0], "replay": verified.digests[1]},
        }
        _put(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode(), options.output)
        return
    from flakestorm.tape.text import plain

    if verified.exit_code == 3:
        click.echo(f"{plain(str(tape))}: nothing to verify: no exchange is on it")
        return
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(verified.requests.items())) or "none made"
    click.echo(f"{plain(str(tape))}: {verified.recorded} recorded; requests of the replay: {counts}")
    for difference in verified.differences:
        click.echo(f"  different: {plain(difference)}")
    click.echo("different" if verified.differences else "equal: every request, their order and the output")
