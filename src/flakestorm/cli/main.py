"""`flakestorm`: finds the command, runs it, and turns every outcome into the right exit code.

0 the gate is met; 1 the agent failed it; 2 usage or configuration; 3 could not be judged; 130 interrupted.

Commands live in modules of their own that are imported only when called for, so `flakestorm --help` stays quick; their
one-line descriptions are kept here for the same reason (a test compares the two).
"""

from __future__ import annotations

import gc

GC_THRESHOLDS = (50_000, 20, 50)
"""How many more objects there must be before the collector looks at the young ones (Python's own default is 700), and
how often it must have done so before it looks at older ones."""

_BEFORE = gc.get_threshold()
gc.set_threshold(*GC_THRESHOLDS)  # before anything is imported, and until `main` is done

import atexit
import errno
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.streams import stand, unread
from flakestorm.errors import FlakestormError, WorldFailed
from flakestorm.version import __version__

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("setup:init", "Write a commented starter config."),
    "demo": ("demo:demo", "Run the bundled agent, tools and model end to end; no key, no network."),
    "run": ("judge:run", "Run the mutations of the golden prompts, or the prompts under chaos, and judge."),
    "mutate": ("mutate:mutate", "Show the mutations of a prompt; nothing is sent."),
    "chaos": ("judge:chaos", "Run the golden prompts under chaos (same as run --chaos-only)."),
    "contract": ("contract:contract", "Run, validate or score the contract over its chaos matrix."),
    "load": ("load:load", "Put 1, 10, 100 users on the agent at once and see which promises still hold."),
    "replay": ("replay:replay", "Replay incidents against a contract; export and import them."),
    "explore": ("explore:explore", "Search the faults for the smallest ones that break a promise."),
    "shrink": ("shrink:shrink", "Reduce a failing case to its smallest form."),
    "ci": ("ci:ci", "Run every configured phase and judge the whole: may this build ship?"),
    "compare": ("compare:compare", "Compare two versions of the agent in pairs: is HEAD worse than BASE?"),
    "blame": ("blame:blame", "Find the step that made a recorded run fail, or say that it was no single one."),
    "doctor": ("doctor:doctor", "Record one run, replay it, and list what differs with its likely source."),
    "record": ("record:record", "Run a program or the configured agent, and record its calls on a tape."),
    "verify-tape": ("verify_tape:verify_tape", "Replay a tape and prove that the agent does the same again."),
    "fork": ("fork:fork", "Run a tape's program again with one change at a site, and live after it."),
    "diff": ("diff:diff", "Compare two tapes: what changed first, and what followed."),
    "verify": ("verify:verify", "Check that agent, boundary and reset are reachable and working."),
    "profiles": ("setup:profiles", "List the built-in chaos profiles."),
    "schema": ("setup:schema", "Print the JSON Schema of flakestorm.yaml."),
    "completion": ("setup:completion", "Print the script that lets your shell complete commands."),
    "gateway": ("gateway:gateway", "Run a boundary on its own, for agents that somebody else starts."),
    "mcp": ("mcp:mcp", "Run an MCP server so that its calls cross the boundary of a run."),
    "report": ("report:report", "Render a saved report in any form, or list those that are saved."),
    "score": ("report:score", "Print a saved report's score and nothing else."),
    "certificate": (
        "certificate:certificate",
        "Issue a signed certificate over a report and its tapes, or verify one.",
    ),
    "scan": ("scan:scan", "Find personal data and injected instructions in files."),
    "view": ("view:view", "Look at saved reports, runs and tapes in a local web viewer."),
    "tapes": ("tapes:tapes", "List, show, import, export and prune recorded tapes."),
}
"""Command name -> (module:attribute in this package, one-line description)."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are first needed.

    Attributes:
        alone: whether the process is for one command, and then ends.
    """

    alone = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"flakestorm.cli.{module}"), attribute)
        if self.alone:
            gc.freeze()  # what was imported stays: whoever looks for garbage later need not look at that
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from flakestorm.core.registry import nearest

            close = nearest(args[0], COMMANDS) if args else None
            hint = f" Did you mean '{close}'?" if close and "Did you mean" not in error.message else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="flakestorm")
@global_options
def cli(_: Globals) -> None:
    """Break an AI agent's world on purpose and see, with evidence, whether it keeps its promises."""


def main(args: list[str] | None = None) -> None:
    """The entry point of the console script; never returns.

    Imports make a hundred thousand objects that stay until the end. Looking through them for garbage again and again
    is a good part of a short command's time, so the collector comes by less often.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    cli.alone = args is None
    if args is None:
        stand()
        sys.unraisablehook = _heed
    try:
        code = _flushed(_run(args))
        if args is None and _may_leave():
            _leave(code)
        sys.exit(code)
    finally:
        gc.set_threshold(*_BEFORE)  # for those who call this from Python
        if args is None and not _foreign():
            gc.freeze()  # the process ends: the last look for garbage, through all there is, finds none worth the time


def _heed(unraisable: sys.UnraisableHookArgs) -> None:
    """Obey a Ctrl-C that came where Python can raise nothing, and so drops it: in a finaliser, or in the callback that
    every import ends with. The command would go on to its verdict otherwise."""
    if unraisable.exc_type is KeyboardInterrupt:
        with suppress(OSError):
            os.write(2, b"interrupted\n")
        os._exit(130)
    sys.__unraisablehook__(unraisable)


def _flushed(code: int) -> int:
    """The exit code, once all that was said is written; 2 where a success could not be told."""
    try:
        sys.stdout.flush()
    except FlakestormError as error:
        click.echo(f"error: {error}", err=True)
        return code or 2
    except (OSError, ValueError, AttributeError):  # closed, or never was
        pass
    return code


def _may_leave() -> bool:
    """Whether the process may end without the interpreter being taken apart.

    It must where an agent's calls are still under way in threads that nobody waits for: that would pull the ground from
    under threads in the middle of native code, and now and then one of them takes the process down with it, so that
    the exit code is a signal's instead of the verdict's. It may where all the code is ours, for nothing of ours needs
    it, and it takes as long as a small report. An agent's module may have left a file open that is written when it is
    found to be garbage; somebody may be tracing this process, or wait for a thread in it.
    """
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if any(not thread.daemon for thread in others):
        return False
    return bool(others) or not (_foreign() or sys.gettrace() or sys.getprofile())


def _foreign() -> bool:
    """Whether code of others may have been imported: an agent or what a config names, or a plug-in."""
    loading = sys.modules.get("flakestorm.core.loading")
    return "importlib.metadata" in sys.modules or (loading is not None and bool(loading.LOADED))


def _leave(code: int) -> None:
    """End the process, with what is to be done at its end, but without taking the interpreter apart.

    Where what was said cannot be written, it returns: the interpreter has its own way to say so.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:  # the reader left
            pass
        except (OSError, ValueError, AttributeError):  # the disk is full, or it is closed or never was
            if threading.active_count() == 1:
                return
    os._exit(code)


def _nowhere() -> bool:
    """Whether the current folder was removed while somebody was in it."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def _run(args: list[str] | None) -> int:
    try:
        result = cli.main(args=args, prog_name="flakestorm", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except FlakestormError as error:
        from flakestorm.reports.text import visible

        click.echo(f"error: {visible(str(error))}", err=True)  # it may quote what an agent said
        return 3 if isinstance(error, WorldFailed) else 2
    except BrokenPipeError:
        unread(sys.stdout.fileno())  # the reader left; say no more
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:  # wherever a name is looked at first
            click.echo(f"error: {str(error.filename)[:60]!r}...: the system takes no file names that long", err=True)
            return 2
        if isinstance(error, FileNotFoundError) and _nowhere():
            click.echo("error: the current folder is not there any more; go to one that is, and try again", err=True)
            return 2
        if os.environ.get("FLAKESTORM_DEBUG"):
            raise
        click.echo(
            f"internal error: {type(error).__name__}: {error}\n"
            "This is a defect in flakestorm, not in your agent; nothing was judged. "
            "Set FLAKESTORM_DEBUG=1 to see where it happened.",
            err=True,
        )
        return 3
    return result if isinstance(result, int) else 0
