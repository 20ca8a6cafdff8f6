"""What the shapes in `model` cannot say: known words, needed keys, patterns that compile, names that are unique.

The checks read the marked tree and not the built model, so they also speak when something else in the file is wrong:
a reader gets every problem at once. They take no shape for granted; what is misshapen is reported by the model.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from flakestorm.config.base import Strict, keys_of
from flakestorm.config.faults import Chaos
from flakestorm.config.invariants import NEEDS, Invariant
from flakestorm.config.marked import Mapping, Node, Scalar, Sequence
from flakestorm.config.model import Config, Contract
from flakestorm.config.problems import Path, Problem
from flakestorm.config.vocabulary import (
    AGENT_TYPES,
    CONTEXT_ATTACKS,
    INVARIANT_TYPES,
    LLM_MODES,
    MUTATION_TYPES,
    TOOL_MODES,
    Vocabulary,
)

__all__ = ["check", "name_invariants"]

MAX_COUNT_V1 = 50
_FOR_THE_SYSTEM: tuple[tuple[str, str], ...] = (
    ("agent", "start"),
    ("agent", "cwd"),
    ("agent", "env"),
    ("output", "path"),
    ("output", "filename_template"),
)
"""Texts that the operating system is given as they are."""


def check(root: Node, model: type[Strict]) -> Iterator[Problem]:
    """The problems of a file that is meant to hold this model."""
    if issubclass(model, Config):
        yield from _config(root)
    elif issubclass(model, Contract):
        yield from _contract(root, ())
    elif issubclass(model, Chaos):
        yield from _faults(root, ())
        yield from _faults(_at(root, "chaos"), ("chaos",))  # where profiles may hold them
    elif issubclass(model, Invariant):
        yield from _invariant(root, ())


def name_invariants(root: Node, model: type[Strict]) -> None:
    """Give every invariant without an id one, in place: its type, with -2, -3 ... where that is taken."""
    if issubclass(model, Config):
        lists = [_at(root, "invariants"), _at(_at(root, "contract"), "invariants")]
    else:
        lists = [_at(root, "invariants")] if issubclass(model, Contract) else []
    for node in lists:
        rules = [item for item in node.items if isinstance(item, Mapping)] if isinstance(node, Sequence) else []
        taken = {_text(rule, "id") for rule in rules}
        named: set[int] = set()
        for rule in rules:
            kind = _text(rule, "type")
            if not kind or _text(rule, "id"):
                continue
            if id(rule) in named:  # an alias of one that has just got its id: that would be one id twice
                continue
            name, n = kind, 1
            while name in taken:
                n += 1
                name = f"{kind}-{n}"
            taken.add(name)
            named.add(id(rule))
            rule.entries["id"] = Scalar(name, name, rule.line)
            rule.lines.setdefault("id", rule.line)


def _config(root: Node) -> Iterator[Problem]:
    yield from _word(_at(root, "agent"), "type", AGENT_TYPES, ("agent",), fold=True)
    yield from _mutations(root)
    yield from _invariants(_at(root, "invariants"), ("invariants",))
    yield from _faults(_at(root, "chaos"), ("chaos",))
    yield from _contract(_at(root, "contract"), ("contract",))
    yield from _matrix(_at(root, "chaos_matrix"), ("chaos_matrix",))
    yield from _turns(root)
    for block, key in _FOR_THE_SYSTEM:
        yield from _without_nul(_at(_at(root, block), key), (block, key))
    yield from _variables(_at(_at(root, "agent"), "env"), ("agent", "env"))


def _variables(env: Node | None, path: Path) -> Iterator[Problem]:
    """Names that no variable may have."""
    for name in env.entries if isinstance(env, Mapping) else ():
        if not name or "=" in name:
            line = env.lines[name] if isinstance(env, Mapping) else 0
            yield Problem((*path, name), line, f"{name!r} is no name of a variable: it must not be empty or hold '='")


def _without_nul(node: Node | None, path: Path) -> Iterator[Problem]:
    """What the system cannot be told: there a text ends where U+0000 is."""
    if isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from _without_nul(item, (*path, index))
    elif isinstance(node, Mapping):
        for name, item in node.entries.items():
            yield from _without_nul(Scalar(name, name, node.lines[name]), (*path, name))
            yield from _without_nul(item, (*path, name))
    elif node is not None and isinstance(node.value, str) and "\0" in node.value:
        yield Problem(path, node.line, "holds the character U+0000, which no file name, argument or variable may hold")


def _turns(root: Node) -> Iterator[Problem]:
    """Turns that are judged and that no golden prompt has."""
    prompts = _at(root, "golden_prompts")
    given = prompts.items if isinstance(prompts, Sequence) else []
    most = max((len(each.items) if isinstance(each, Sequence) else 1 for each in given), default=1)
    places: list[tuple[Node | None, Path]] = [
        (_at(root, "invariants"), ("invariants",)),
        (_at(_at(root, "contract"), "invariants"), ("contract", "invariants")),
    ]
    for rules, path in places:
        for index, rule in enumerate(rules.items if isinstance(rules, Sequence) else []):
            turn = _at(rule, "turn")
            if isinstance(turn, Scalar) and isinstance(turn.value, int) and turn.value > most:
                has = "one turn" if most == 1 else f"{most} turns"
                yield Problem((*path, index, "turn"), turn.line, f"the longest of golden_prompts has {has}")


def _contract(contract: Node | None, path: Path) -> Iterator[Problem]:
    yield from _invariants(_at(contract, "invariants"), (*path, "invariants"))
    yield from _matrix(_at(contract, "chaos_matrix"), (*path, "chaos_matrix"))


def _mutations(root: Node) -> Iterator[Problem]:
    mutations = _at(root, "mutations")
    types, weights, count = _at(mutations, "types"), _at(mutations, "weights"), _at(mutations, "count")
    for index, item in enumerate(types.items if isinstance(types, Sequence) else []):
        if isinstance(item, Scalar) and isinstance(item.value, str):
            complaint = MUTATION_TYPES.complaint(item.value)
            if complaint:
                yield Problem(("mutations", "types", index), item.line, complaint)
    for key in weights.entries if isinstance(weights, Mapping) else ():
        complaint = MUTATION_TYPES.complaint(key)
        if complaint and isinstance(weights, Mapping):
            yield Problem(("mutations", "weights", key), weights.lines[key], complaint)
    version = _at(root, "version")
    first = not isinstance(version, Scalar) or version.value in (None, "1.0", 1.0)
    given = count.value if isinstance(count, Scalar) else None
    if first and isinstance(given, int) and given > MAX_COUNT_V1 and isinstance(mutations, Mapping):
        yield Problem(
            ("mutations", "count"),
            mutations.lines["count"],
            f'must be an integer between 1 and {MAX_COUNT_V1} in a file of version "1.0", not {given}; '
            'version: "2.0" has no upper limit',
        )


def _matrix(matrix: Node | None, path: Path) -> Iterator[Problem]:
    lines: dict[str, int] = {}
    for index, scenario in enumerate(matrix.items if isinstance(matrix, Sequence) else []):
        yield from _faults(scenario, (*path, index))
        name = _text(scenario, "name")
        if not name or not isinstance(scenario, Mapping):
            continue
        line = scenario.lines["name"]
        if name in lines:
            yield Problem(
                (*path, index, "name"),
                line,
                f"two scenarios are named {name!r}: the other is on line {lines[name]}; give each a name of its own",
            )
        lines.setdefault(name, line)


def _faults(chaos: Node | None, path: Path) -> Iterator[Problem]:
    for key, word, vocabulary in (
        ("tool_faults", "mode", TOOL_MODES),
        ("llm_faults", "mode", LLM_MODES),
        ("context_attacks", "type", CONTEXT_ATTACKS),
    ):
        faults = _at(chaos, key)
        if isinstance(faults, Sequence):
            for index, fault in enumerate(faults.items):
                yield from _word(fault, word, vocabulary, (*path, key, index))
        elif isinstance(faults, Mapping) and key == "context_attacks":
            for kind in faults.entries:
                complaint = vocabulary.complaint(kind)
                if complaint:
                    yield Problem((*path, key, kind), faults.lines[kind], complaint)


def _invariants(rules: Node | None, path: Path) -> Iterator[Problem]:
    lines: dict[str, int] = {}
    for index, rule in enumerate(rules.items if isinstance(rules, Sequence) else []):
        yield from _invariant(rule, (*path, index))
        name = _text(rule, "id")
        if not name or not isinstance(rule, Mapping):
            continue
        line = rule.lines["id"]
        if name in lines:
            yield Problem(
                (*path, index, "id"),
                line,
                f"two invariants have the id {name!r}: the other is on line {lines[name]}; give each an id of its own",
            )
        lines.setdefault(name, line)


def _invariant(rule: Node, path: Path) -> Iterator[Problem]:
    if not isinstance(rule, Mapping):
        return
    yield from _word(rule, "type", INVARIANT_TYPES, path)
    kind = _text(rule, "type")
    called = f"invariant {_text(rule, 'id')!r}" if _text(rule, "id") else "an invariant"
    for key in NEEDS.get(kind, ()):
        value = rule.entries.get(key)
        if value is None or _empty(value):
            line = rule.lines.get(key, rule.lines.get("type", rule.line))
            about = keys_of(Invariant)[key].about
            yield Problem(
                (*path, key), line, f"{called} of type {kind!r} needs {key!r} ({about.partition(': ')[2] or about})"
            )
    yield from _pattern(rule.entries.get("pattern"), (*path, "pattern"))
    patterns = rule.entries.get("patterns")
    for index, pattern in enumerate(patterns.items if isinstance(patterns, Sequence) else []):
        yield from _pattern(pattern, (*path, "patterns", index))


def _pattern(node: Node | None, path: Path) -> Iterator[Problem]:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return
    shown = node.raw if len(node.raw) <= 60 else f"{node.raw[:57]}..."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubtful, but valid
            re.compile(node.value)
    except re.error as error:
        place = "" if error.pos is None else f" at position {error.pos}"
        yield Problem(path, node.line, f"{shown!r} is not a valid regular expression: {error.msg}{place}")
    except (RecursionError, OverflowError) as error:
        yield Problem(path, node.line, f"{shown!r} is not a usable regular expression: {error}")


def _word(node: Node | None, key: str, vocabulary: Vocabulary, path: Path, *, fold: bool = False) -> Iterator[Problem]:
    """Check one word; `fold` takes it in any case."""
    word = _text(node, key)
    complaint = vocabulary.complaint(word) if word else None
    if complaint and fold and word.strip().lower() in vocabulary.words:
        return
    if complaint and isinstance(node, Mapping):
        yield Problem((*path, key), node.lines[key], complaint)


def _at(node: Node | None, key: str) -> Node | None:
    return node.entries.get(key) if isinstance(node, Mapping) else None


def _text(node: Node | None, key: str) -> str:
    """The text at this key; a bare number is the text it is written as, as it will be in the model."""
    value = _at(node, key)
    if not isinstance(value, Scalar) or value.value is None:
        return ""
    return value.value if isinstance(value.value, str) else value.raw


def _empty(node: Node) -> bool:
    if isinstance(node, Scalar):
        return node.value is None or node.value == ""
    return isinstance(node, Sequence) and not node.items
