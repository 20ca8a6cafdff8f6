"""What a page may have started, and the command line that it comes to.

A page names a run, a place in it and a change; nothing else of a command line is the page's to choose. The config is
the one beside the store, the site is read from the tape again, and every word is an argument of its own: no shell reads
them, and what a name or a value holds cannot become an option. Nothing is started or written here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from flakestorm.errors import FlakestormError, Misuse
from flakestorm.faults.modes import CONTEXT, LLM, TOOL, homes
from flakestorm.faults.planned import parse_injection
from flakestorm.reports.text import encodable, one_line, unbroken, visible
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape
from flakestorm.viewer.shelf import Shelf

__all__ = ["BODY_BYTES", "BUDGET", "CHILD", "REPLY", "SESSION", "Order", "Wish", "modes_for", "order", "refused"]

CHILD, REPLY, SESSION = "fork.tape", "reply.txt", "smallest.yaml"
"""Files of an order, in its own folder: a fork's tape, the other reply it was given, a smallest case as a session."""

BODY_BYTES = 8 * 1024 * 1024
"""The longest reply that a page may give."""

BUDGET = 200
"""Runs of a shrink where no other number is asked for, as at the command line."""

_MOST_RUNS = 5000
_VALUE = 4000
_FORKED = ("llm", "tool", "mcp", "http")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a page asks for.

    Args:
        kind: `fork` or `shrink`.
        of: `REPORT/RUN`, or `tape:PATH` for a tape that lies in the folder (to fork).
        at: which exchange, in order of arrival from 0 (to fork).
        change: what is changed there: `fault`, `resample`, `model` or `set`.
        value: the fault, the model's name, or the whole body of another reply.
        tools: who answers tools after the site, `live` or `tape`.
        budget: at most so many runs (to shrink).
    """

    kind: str
    of: str
    at: int = 0
    change: str = "fault"
    value: str = ""
    tools: str = "live"
    budget: int = BUDGET

    @classmethod
    def of_mapping(cls, said: Mapping[str, Any]) -> Wish:
        """From a request's query or body; what it does not say has its default.

        Raises:
            ValueError: a number is none, or something is no text.
        """
        texts = {name: said[name] for name in ("kind", "of", "change", "value", "tools") if name in said}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ValueError("kind, of, change, value and tools are texts")
        numbers = {name: int(said[name]) for name in ("at", "budget") if said.get(name) not in (None, "")}
        found: dict[str, Any] = {"kind": "", "of": "", **texts, **numbers}
        return cls(**found)


@dataclass(frozen=True, slots=True)
class Order:
    """What will be started.

    Args:
        kind: `fork` or `shrink`.
        of: what it is made from, as in `Wish`.
        title: what it is, on one line.
        words: the arguments of `flakestorm`.
        says: in plain words, what that does.
        cwd: where it runs: the config's folder.
        body: what `REPLY` will hold; None where there is none.
        runs: at most so many, of a shrink.
    """

    kind: Literal["fork", "shrink"]
    of: str
    title: str
    words: tuple[str, ...]
    says: tuple[str, ...]
    cwd: Path
    body: bytes | None = None
    runs: int = 0

    @property
    def line(self) -> str:
        """The command line, as one would type it."""
        return unbroken(shlex.join(("flakestorm", *self.words)))


def refused(shelf: Shelf, of: str) -> str:
    """Why nothing can be started from this run or tape; empty where something can."""
    try:
        _config(shelf, of)
    except FlakestormError as error:
        return visible(str(error))
    return ""


def order(shelf: Shelf, wish: Wish, into: Path) -> Order:
    """What a wish comes to.

    Args:
        shelf: the store.
        wish: what a page asks for.
        into: the folder that what it makes will be written to.

    Raises:
        Misuse: it cannot be done; the message says why.
    """
    config = _config(shelf, wish.of)
    make = {"fork": _fork, "shrink": _shrink}.get(wish.kind)
    if make is None:
        raise Misuse(f"a page can start 'fork' and 'shrink', not {one_line(wish.kind, 40)!r}")
    made = make(shelf, wish, config, into.absolute())
    if any("\0" in word or encodable(word) != word for word in made.words):
        raise Misuse("a name in it cannot stand on a command line: it holds a NUL, or half a character")
    return made


def modes_for(kind: str) -> list[str]:
    """The modes that can be done to a call of this kind."""
    if kind == "llm":
        return sorted(homes(LLM))
    only_mcp = set(TOOL["mcp"])
    return sorted(mode for mode in (*homes(TOOL), *homes(CONTEXT)) if kind == "mcp" or mode not in only_mcp)


def _config(shelf: Shelf, of: str) -> Path:
    """The project's config that the run was made with.

    Only its name is taken from the report or the tape: it is the file of that name beside the store.

    Raises:
        Misuse: it is not known, not there, or the tape wants a command of its own to be run.
    """
    kind = of.partition(":")[0]
    header: Mapping[str, Any] = {}
    if kind == "tape":
        header = Tape.open(shelf.recording(of).path).header
        command = header.get("command")
        said = command.get("config") if isinstance(command, dict) else None
    else:
        saved = shelf.saved(of.partition("/")[0])
        if saved.report is None:
            raise Misuse("a comparison's runs are of two versions; start from a report of one of them")
        said = saved.head.get("config")
        if shelf.taped(*_run(of)):
            header = Tape.open(shelf.recording(of).path).header
    recorded = header.get("command")
    if isinstance(recorded, dict) and recorded.get("argv"):
        raise Misuse("this tape names a command of its own to run; do that at the command line, with `flakestorm fork`")
    if not isinstance(said, str) or not said:
        raise Misuse("it is not known which config this was made with; use `flakestorm fork TAPE -c CONFIG`")
    folder = shelf.folder.resolve().parent
    path = folder / PurePath(said).name
    if kind == "tape" and Path(said).absolute() != path.absolute():
        raise Misuse(f"this tape was made with {one_line(said, 200)}, which is not the config beside this store")
    if not path.is_file() or path.is_symlink():
        raise Misuse(f"its config {one_line(path.name, 200)!r} is not in {folder} any more")
    return path


def _run(of: str) -> tuple[str, str]:
    report, _, run = of.partition("/")
    return report, run


def _fork(shelf: Shelf, wish: Wish, config: Path, into: Path) -> Order:
    recording = shelf.recording(wish.of)
    if recording.damage or not recording.complete:
        raise Misuse("this tape is damaged, or its recording was interrupted; it cannot be forked")
    exchange = recording.exchange(wish.at)
    site = exchange.site
    if exchange.kind not in _FORKED:
        raise Misuse(f"a call of kind {exchange.kind!r} cannot be changed; choose a call to a model or a tool")
    if wish.tools not in ("live", "tape"):
        raise Misuse("tools are 'live' or answered by the 'tape'")
    option, said, body = _change(wish, exchange, into)
    words = (
        *("fork", "-c", str(config), f"--at={site}", option, "--tools", wish.tools),
        *("-o", str(into / CHILD), "--format", "json", "--", str(recording.path.resolve())),
    )
    before = wish.at
    after = (
        "After it, the model is really asked; tools are answered by the tape."
        if wish.tools == "tape"
        else "After it, the model and the tools are really called: that may cost money, and change things."
    )
    return Order(
        "fork",
        wish.of,
        one_line(f"fork at {site}: {said}", 160),
        words,
        (
            _asks(config, "once"),
            f"{before or 'No'} call{'' if before == 1 else 's'} before {unbroken(str(site))} "
            f"{'is' if before == 1 else 'are'} answered by the tape; there: {said}.",
            after,
            f"The new run is written to {visible(str(into / CHILD))}.",
        ),
        config.parent,
        body,
    )


def _change(wish: Wish, exchange: Exchange, into: Path) -> tuple[str, str, bytes | None]:
    """The option, in words, and the reply that is given."""
    value = wish.value
    if wish.change == "resample":
        return "--resample", "the world is asked again", None
    if wish.change == "set":
        body = value.encode("utf-8", "replace")
        if len(body) > BODY_BYTES:
            raise Misuse("the reply is larger than 8 MB; use `flakestorm fork --set FILE`")
        return f"--set={into / REPLY}", "another reply", body
    if not value.strip() or len(value) > _VALUE or "\0" in value:
        raise Misuse("say which fault, e.g. error:503" if wish.change == "fault" else "name the model to be asked")
    if wish.change == "fault":
        planned = parse_injection(f"{exchange.site.exact}={value}")
        if planned.on_results:
            raise Misuse("a fork has the call itself, so leave @result out")
        return f"--fault={value}", f"the fault {unbroken(value)}", None
    if wish.change != "model":
        raise Misuse("a change is 'fault', 'resample', 'model' or 'set'")
    if exchange.kind != "llm":
        raise Misuse(f"{exchange.site} is no model call, so no other model can answer it")
    return f"--model={value}", f"the model {unbroken(value)} is asked instead", None


def _shrink(shelf: Shelf, wish: Wish, config: Path, into: Path) -> Order:
    id_, run = _run(wish.of)
    saved = shelf.saved(id_)
    if run not in saved.runs:
        raise Misuse(f"report {id_} has no run {one_line(run, 80)!r}")
    if all(cell.get("verdict") != "fail" for cell in saved.cells_of.get(run, [])):
        raise Misuse("only a run that failed can be shrunk")
    if not 2 <= wish.budget <= _MOST_RUNS:
        raise Misuse(f"a shrink makes 2 to {_MOST_RUNS} runs")
    words = ("shrink", "-c", str(config), "--budget", str(wish.budget), "-o", str(into / SESSION), "--format", "json")
    return Order(
        "shrink",
        wish.of,
        one_line(f"shrink {run}", 160),
        (*words, "--", f"{id_}#{run}"),
        (
            _asks(config, f"up to {wish.budget} times, with fewer and weaker faults"),
            "Nothing is answered by a tape: the model and the tools are really called each time, and may cost money.",
            f"The smallest case is written to {visible(str(into / SESSION))}.",
        ),
        config.parent,
        runs=wish.budget,
    )


def _asks(config: Path, often: str) -> str:
    where = f"in {visible(str(config.parent))}"
    return f"The agent that {visible(config.name)} describes is started {where}, and asked {often}."
