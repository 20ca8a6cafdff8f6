"""Fork: the recorded program runs again, its tape answers up to a site, and there something is changed."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flakestorm.api.forked import Change, Ended, Forked, Forking
from flakestorm.api.recording import globs_of, line_of, moment, run_here
from flakestorm.api.trusting import Approve, always, demand
from flakestorm.boundary.draws import Drawing, held
from flakestorm.boundary.session import Crossing
from flakestorm.core.clock import Clock
from flakestorm.core.ledger import Ledger
from flakestorm.core.site import Site
from flakestorm.engine.hooks import Inside
from flakestorm.errors import Misuse
from flakestorm.executors.world import LocalWorld
from flakestorm.tape.fork import Tools
from flakestorm.tape.match import Mode
from flakestorm.tape.origin import Named, made_here, named_by
from flakestorm.tape.reader import Tape
from flakestorm.tape.writer import Recorder

if TYPE_CHECKING:
    from flakestorm.api.project import Project

__all__ = ["fork", "fork_program"]


def fork(
    tape: str | Path,
    fn: Callable[..., Any] | None = None,
    *,
    at: Site | str,
    to: str | Path,
    reply: bytes | str | None = None,
    fault: str | None = None,
    model: str | None = None,
    tools: Tools = "live",
    names: Mapping[str, str] | None = None,
    mode: Mode = "renamed",
    restore: Callable[[Site], None] | None = None,
    seed: int = 0,
    trust_tape: bool = False,
) -> Any:
    """Run again what was recorded, with the tape's answers up to a site, one change there, and the world after it.

    An async function is run to its end; called where an event loop runs, the result is to be awaited.

    Args:
        tape: the tape.
        fn: what was recorded: `fn(input)` if the tape has an input, else `fn()`. None runs the recorded command, or
            asks the recorded config's agent.
        at: the site, e.g. `tool/search#1`.
        to: the file of the tape to write.
        reply, fault, model: the change (`Change`), at most one; none asks the world again.
        tools: `tape` has tools answered by the tape after the site too, by what they are asked.
        names: names of plain-HTTP tools, as they were given to `record`.
        mode: how the calls before the site are matched, as in `replay`.
        restore: makes the environment what it was when the recorded run came to the site; called there, once. By
            default `agent.restore` of the recorded config, where that config's agent is asked.
        seed: what a fault's choices follow from.
        trust_tape: whether, without `fn`, what the tape names is run though it is not known to be yours.

    Returns:
        A `Forked`.

    Raises:
        Misuse: the tape has no such site, the change does not fit it, or what it names may not be run.
        TapeDamaged: the tape cannot be trusted.
        TapeMismatch: before the site, the program did something else than was recorded.
        WorldFailed: the environment could not be restored.
    """
    globs = globs_of(names)
    change = Change(reply.encode() if isinstance(reply, str) else reply, fault, model)
    if fn is None:
        demand(Tape.open(tape), approve=always if trust_tape else None)
        restore = restore or _configured(Path(tape), None)
    forking = Forking(tape, at, to, change, tools=tools, mode=mode, restore=restore, seed=seed)
    if fn is None:
        return _program(forking, (), None, globs, quiet=True)
    given = () if forking.input is None else (forking.input,)
    if inspect.iscoroutinefunction(fn):
        return run_here(_awaited(fn(*given), forking, globs))
    with _in_process(forking, globs) as ended:
        ended.value = fn(*given)
    if inspect.isawaitable(ended.value):
        return run_here(_awaited(ended.value, forking, globs))
    return forking.ended(ended)


def fork_program(
    tape: Path,
    at: str,
    to: Path,
    change: Change,
    argv: Sequence[str] = (),
    *,
    project: Project | None = None,
    tools: Tools = "live",
    names: Sequence[tuple[str, str]] = (),
    mode: Mode = "renamed",
    restore: Callable[[Site], None] | None = None,
    seed: int = 0,
    quiet: bool = False,
    approve: Approve | None = None,
) -> Forked:
    """As `fork`, of a command or of a project's agent; a command's output passes through.

    Args:
        tape, at, to, change: what to fork, where, the file of the child, and the change.
        argv: the command; the recorded one where empty.
        project: whose agent is asked where no command was recorded; by default that of the recorded config.
        tools, names, mode, restore, seed: see `fork`.
        quiet: whether the command's output is only kept.
        approve: as for `trusting.demand`.
    """
    opened = Tape.open(tape)
    demand(opened, argv=argv, config=None if project is None else project.config, approve=approve)
    if (
        not argv or project is not None or made_here(opened)
    ):  # a given command vouches for no config that the tape names
        restore = restore or _configured(tape, project)
    forking = Forking(tape, at, to, change, tools=tools, mode=mode, restore=restore, seed=seed)
    return _program(forking, argv, project, names, quiet=quiet)


def _configured(tape: Path, project: Project | None) -> Callable[[Site], None] | None:
    """What the project, by default that of the recorded config, puts back at a fork."""
    from flakestorm.api.snapshots import restoring

    if project is None:
        named = named_by(Tape.open(tape))
        if named is not None and named.config and Path(named.config).is_file():
            from flakestorm.config import load

            return restoring(load(Path(named.config)), tape)
    return None if project is None else restoring(project.config, tape)


async def _awaited(work: Awaitable[Any], forking: Forking, names: Sequence[tuple[str, str]]) -> Forked:
    with _in_process(forking, names) as ended:
        ended.value = await work
    return forking.ended(ended)


@contextmanager
def _in_process(forking: Forking, names: Sequence[tuple[str, str]]) -> Iterator[Ended]:
    """While entered, the calls of this context are those of the fork. What the code raises is how it ended."""
    from flakestorm.agents.reading import read_value
    from flakestorm.boundary import inprocess

    given = forking.input
    recorder, line = _line(forking, names, {} if given is None else {"input": given})
    ended = Ended()
    try:
        with inprocess.held(), held() if line.draws is not None else nullcontext(), line.active():
            yield ended
        said = None if inspect.isawaitable(ended.value) else read_value(ended.value, None)
        ended.output = said if isinstance(said, str) and ended.value is not None else ""
    except Exception as error:
        ended.error = f"{type(error).__name__}: {error}"
    finally:
        recorder.close(output=ended.output, error=ended.error)
        ended.exchanges = recorder.exchanges


def _line(forking: Forking, names: Sequence[tuple[str, str]], facts: Mapping[str, object]) -> tuple[Recorder, Crossing]:
    """The recorder of the child, and the crossing of its run."""
    draws = forking.draws
    drawing = None if draws is None else Drawing(draws, live=False)
    clock = Clock(forking.time, skips=LocalWorld(forking.to.parent).skips)
    ledger = Ledger()
    drawn = {} if draws is None else {"draws": draws.header}
    header = {"run": forking.to.stem, **facts, **drawn, **forking.parent, **moment()}
    reached = None if drawing is None else drawing.reach
    recorder = Recorder(
        forking.to, clock=clock.now, ledger=ledger, header=header, reached=reached, redactor=forking.redactor
    )
    forking.begins(Inside(ledger, recorder.heard, lambda: recorder.exchanges), drawing)
    return recorder, line_of(forking.to.stem, recorder, clock, names, forking.stages, drawing)


def _program(
    forking: Forking,
    argv: Sequence[str],
    project: Project | None,
    names: Sequence[tuple[str, str]],
    *,
    quiet: bool,
) -> Forked:
    named = named_by(forking.tape) or Named()
    if argv or named.argv:
        return forking.ended(_command(forking, argv, named, names, quiet=quiet))
    return forking.ended(_agent(forking, project, named))


def _command(
    forking: Forking,
    argv: Sequence[str],
    named: Named,
    names: Sequence[tuple[str, str]],
    *,
    quiet: bool,
) -> Ended:
    from flakestorm.api.launching import Ran, launch
    from flakestorm.api.launching import demand as there_must_be
    from flakestorm.api.loops import in_a_loop

    words = list(argv) or [forking.real(word) for word in named.argv]
    cwd = Path.cwd() if argv else Path(named.cwd)
    there_must_be(words, cwd)
    footer = forking.tape.footer
    stdin = forking.redactor.real(footer.stdin or b"") if footer is not None else b""
    recorder, line = _line(forking, names, {"command": {"argv": words, "cwd": str(cwd)}})
    ran: Ran | None = None
    try:
        ran = in_a_loop(lambda: launch(words, cwd=cwd, line=line, stdin=stdin, quiet=quiet))
    finally:
        if ran is None:
            recorder.close(error="the fork was interrupted")
        else:
            recorder.close(output=ran.output, error=ran.error, stdin=ran.stdin)
    return Ended(ran.output, ran.error, ran.code, None, ran.interrupted, recorder.exchanges)


def _agent(forking: Forking, project: Project | None, named: Named) -> Ended:
    from flakestorm.api.asking import ask, named_project
    from flakestorm.api.options import Options

    text, path = forking.input, forking.tape.path
    if text is None:
        raise Misuse(f"{path} names no command to run again; give one: fork {path} --at SITE ... -- COMMAND")
    project = project or named_project(path, named)
    run = ask(
        project,
        text,
        forking.to,
        Options(seed=0),
        facts={"command": {"config": str(project.path.absolute())}, **forking.parent, **moment()},
        draws=forking.draws,
        player=forking.player,
        within=forking.stages[1:],
        redactor=forking.redactor,
        time=forking.time,
        begins=forking.begins,
    )
    return Ended(run.output or "", run.error, exchanges=Tape.open(forking.to).exchanges())
