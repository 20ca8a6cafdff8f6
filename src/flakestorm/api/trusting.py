"""May what a tape names be run? A tape from a stranger names whatever the stranger likes.

What may be run without a question: a command that the user has given, or that the user's own config starts; the agent
of the user's own config; and what a tape names that was sealed with a key of this user (`tape/origin.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from flakestorm.config.model import Config
from flakestorm.core.record import Record
from flakestorm.errors import Misuse
from flakestorm.tape.origin import VARIABLE, Named, known_keys, made_here, named_by
from flakestorm.tape.reader import Tape
from flakestorm.tape.text import plain

__all__ = ["Approve", "Wanted", "always", "demand", "demand_of_report"]


_SHOWN = 1000  # characters


class Wanted(Record, frozen=True):
    """Something that would be run by the word of a file which nobody vouches for.

    Args:
        file: it; why: why it is not trusted, in words.
        named: what it names.
    """

    file: Path
    why: str
    named: Named


Approve = Callable[[Wanted], bool]
"""Whether somebody lets it be run: a question, or an option."""


def always(_: Wanted) -> bool:
    """For who has said that the tape is trusted."""
    return True


def demand(
    tape: Tape, *, argv: Sequence[str] = (), config: Config | None = None, approve: Approve | None = None
) -> None:
    """What is to be run may be: where it is the user's own, nothing is asked.

    Args:
        tape: the tape.
        argv: the command that the user has given instead.
        config: the user's own.
        approve: is asked where nothing vouches for the tape; nobody when None.

    Raises:
        Misuse: it may not; the message says what would have been run, and what to do.
        TapeDamaged: the tape cannot be read to its end.
    """
    named = named_by(tape)
    if argv or named is None or (not named.argv and config is not None) or _starts(config, named):
        return
    if not made_here(tape):
        _ask(
            Wanted(tape.path, _doubt(tape), named), approve, "-- COMMAND" if named.argv else "-- COMMAND, or -c CONFIG"
        )


def demand_of_report(file: Path, config: str, *, approve: Approve | None = None) -> None:
    """The config that a report in a file names, and the user does not, may be run.

    Raises:
        Misuse: as `demand`.
    """
    why = "a report in a file carries no seal"
    _ask(Wanted(file, why, Named(config=config)), approve, "-c CONFIG")


def _ask(wanted: Wanted, approve: Approve | None, given: str) -> None:
    if approve is not None and approve(wanted):
        return
    whole = plain(str(wanted.named))
    said = whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}… (of {len(whole):,} characters)"
    ways = (
        f"Say yourself what is to be run ({given}); or, if you trust whoever made it, add --trust-tape"
        if approve is not None
        else "Give the function or the command yourself; or, if you trust whoever made it, pass trust_tape=True"
    )
    key = f" (or set {VARIABLE} to the key that it was sealed with)" if given.startswith("--") else ""
    raise Misuse(
        f"{wanted.file} names what is to be run, and is not known to be yours: {wanted.why}. Nothing was run; it would "
        f"have been: {said}. {ways}{key}"
    )


def _doubt(tape: Tape) -> str:
    """Why the tape is not trusted."""
    footer = tape.footer
    if footer is None or footer.origin is None:
        return "it carries no seal"
    if next(known_keys(), None) is None:
        return "it carries a seal, and there is no key here to check it with"
    return "its seal is of another key than yours, or of another tape"


def _starts(config: Config | None, named: Named) -> bool:
    """Whether the user's own config starts this very command, in this folder."""
    if config is None or not config.agent.start or not named.argv or "\0" in named.cwd:
        return False
    from flakestorm.agents.commandline import command_line

    start = config.agent.start
    words = command_line(start, prompt="{prompt}")
    folder = Path(config.folder, config.agent.cwd or ".")
    return tuple(words) == named.argv and folder.resolve() == Path(named.cwd).resolve()
