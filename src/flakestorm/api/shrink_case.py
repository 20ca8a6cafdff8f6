"""The failing case that `shrink` is to make smaller: read from a printed line, a report's run, a tape or a session."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from flakestorm.config.replays import ReplaySession
from flakestorm.core.conversation import prompt_of
from flakestorm.core.site import Site, Sites
from flakestorm.engine.atoms import Atom, Atoms
from flakestorm.engine.events import RunResult
from flakestorm.faults.planned import TRIGGERS, Planned, parse_fault

__all__ = ["Case", "atom_of", "case_of_line", "case_of_run", "case_of_session", "case_of_tape"]


@dataclass(frozen=True, slots=True)
class Case:
    """A failing run to be made smaller.

    Args:
        atoms: its faults.
        prompt: index of its golden prompt, or None.
        text: its input, where that is no golden prompt.
        invariant: which rule it broke; any when empty.
        seed: of the run, where it is known.
    """

    atoms: Atoms
    prompt: int | None = None
    text: str | None = None
    invariant: str = ""
    seed: int | None = None


def case_of_line(line: str, *, golden: Sequence[str], invariant: str = "", seed: int | None = None) -> Case:
    """The case that a `flakestorm run ... --inject ...` line tells.

    Raises:
        Misuse: it is not such a line.
    """
    words, atoms = shlex.split(line), set[Atom]()
    prompt: int | None = None
    turns: list[str] = []
    for name, value in pairwise(words):
        if name == "--inject":
            atoms.add(atom_of(value))
        elif name == "--prompt":
            prompt = int(value)
        elif name == "--input":
            turns.append(value)
        elif name == "--seed":
            seed = int(value)
    text = prompt_of(turns) if turns else None
    if text is not None and text in golden:
        prompt, text = list(golden).index(text), None
    return Case(frozenset(atoms), 0 if prompt is None and text is None else prompt, text, invariant, seed)


def case_of_run(run: RunResult, *, golden: Sequence[str], invariant: str, seed: int) -> Case:
    """The case of a run in a report."""
    return case_of_line(run.reproduce, golden=golden, invariant=invariant, seed=seed)


def case_of_tape(path: Path, *, golden: Sequence[str]) -> Case:
    """The case that a tape holds: its input, and the faults that fired, each at the call it hit, with its settings.

    Raises:
        Misuse: it cannot be read.
    """
    from flakestorm.tape.reader import Tape

    tape = Tape.open(path)
    planned = tape.header.get("faults")
    lines = [str(line) for line in planned] if isinstance(planned, list) else []
    fired = dict.fromkeys(
        (f.site, _settings(lines[f.fault], f.site) if 0 <= f.fault < len(lines) else f.mode)
        for x in tape.exchanges()
        for f in x.faults
    )
    text, turns = str(tape.header.get("original", tape.header.get("input", ""))), tape.header.get("turns")
    if isinstance(turns, list) and turns and "original" not in tape.header:
        text = prompt_of([str(turn) for turn in turns])
    prompt = list(golden).index(text) if text in golden else None
    seed = tape.header.get("seed")
    atoms = frozenset(Atom(site, fault) for site, fault in fired)
    return Case(atoms, prompt, None if prompt is not None else text, "", seed if isinstance(seed, int) else None)


def _settings(line: str, site: Site) -> str:
    """What a fault of a schedule does, without when and where it was to do so."""
    from msgspec.structs import replace as with_

    planned = parse_fault(line)
    plain = parse_fault(f"{site.exact}={planned.mode}").spec
    spec = with_(planned.spec, **{name: getattr(plain, name) for name in TRIGGERS if hasattr(plain, name)})
    return Planned(0, planned.family, spec).fault


def atom_of(line: str) -> Atom:
    """A fault as `--inject` takes it.

    Raises:
        Misuse: it is none.
    """
    planned = parse_fault(line)
    if planned.spec.site is None:
        return Atom(Site(planned.expected.kind, planned.expected.name, 1), planned.fault, lasting=True)
    return Atom(Site.parse(planned.spec.site), planned.fault)


def case_of_session(session: ReplaySession) -> Case:
    """The case that a session tells: its input, its faults, and one for each tool reply that a fault had made, or that
    says that the tool failed."""
    sites, atoms = Sites(), {atom_of(line) for line in session.faults}
    for reply in session.tool_responses:
        site, status = sites.next("tool", reply.tool), reply.status
        if status is not None and status >= 400 and reply.fault in (None, "error"):
            atoms.add(Atom(site, f"error:{min(status, 599)}"))
        elif reply.fault is not None:
            atoms.add(Atom(site, reply.fault))
        elif status == 0:
            atoms.add(Atom(site, "connection_reset"))
    return Case(frozenset(atoms), None, prompt_of(session.input))
