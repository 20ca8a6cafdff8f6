"""Invariants on the agent's output, by plain rules.

`contains`, `contains_any` and `excludes_pattern` ignore case and `.` in patterns matches newlines, as configs written
for earlier versions rely on; inside a pattern `(?-i:...)` and `(?-s:...)` say otherwise. `regex` respects case.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.evidence import brief, plain, quote, quote_around
from flakestorm.contracts.searching import TooLong, compiled, search
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.errors import Misuse

__all__ = ["EXCLUDES_FLAGS", "REGEX_FLAGS", "SEARCH_CHARS", "absent", "compiled", "vet_patterns"]

SEARCH_CHARS = 1_000_000
"""How much of an output patterns are matched against: a regular expression may take more than linear time."""

REGEX_FLAGS = re.DOTALL
EXCLUDES_FLAGS = re.DOTALL | re.IGNORECASE


def vet_patterns(spec: Invariant) -> None:
    """Refuse patterns that are no regular expressions."""
    flags = REGEX_FLAGS if spec.pattern is not None else EXCLUDES_FLAGS
    for pattern in (spec.pattern,) if spec.pattern is not None else spec.patterns or ():
        try:
            compiled(pattern, flags)
        except re.error as error:
            raise Misuse(f"{pattern!r} is not a regular expression: {error}") from error


def absent(run: RunView, verdict: Verdict) -> Verdict:
    """A verdict that rests on not finding something: inconclusive where only part of the output was searched."""
    length = len(run.output)
    if length <= SEARCH_CHARS:
        return verdict
    return inconclusive(f"{verdict.reason} (only the first {SEARCH_CHARS:,} of {length:,} characters were searched)")


@built_in("contains", "requires", needs=("value",))
def contains(spec: Invariant, run: RunView) -> Verdict:
    """`value` occurs in the output, in any case."""
    value = spec.value or ""
    if value.casefold() in run.output.casefold():
        return passed(f"found {quote(value)}")
    return failed(f"{quote(value)} not found in {quote(run.output)}")


@built_in("contains_any", "requires", needs=("values",))
def contains_any(spec: Invariant, run: RunView) -> Verdict:
    """At least one of `values` occurs in the output, in any case."""
    text = run.output.casefold()
    found = next((value for value in spec.values or () if value.casefold() in text), None)
    if found is not None:
        return passed(f"found {quote(found)}")
    listed = ", ".join(quote(value, 40) for value in (spec.values or ())[:8])
    return failed(f"none of {listed} found in {quote(run.output)}")


@built_in("regex", "requires", needs=("pattern",), vet=vet_patterns)
def regex(spec: Invariant, run: RunView) -> Verdict:
    """`pattern` matches somewhere in the output."""
    pattern = spec.pattern or ""
    try:
        found = search(pattern, REGEX_FLAGS, run.output[:SEARCH_CHARS])
    except TooLong as error:
        return inconclusive(f"{plain(pattern)}: {error}")
    if found is None:
        return absent(run, failed(f"no match for {plain(pattern)} in {quote(run.output)}"))
    return passed(f"{plain(pattern)} matches {quote_around(run.output, *found)}")


@built_in("excludes_pattern", "forbids", needs=("patterns",), vet=vet_patterns)
def excludes_pattern(spec: Invariant, run: RunView) -> Verdict:
    """None of `patterns` (regular expressions) matches anywhere in the output, in any case."""
    text, given_up = run.output[:SEARCH_CHARS], ""
    for pattern in spec.patterns or ():
        try:
            found = search(pattern, EXCLUDES_FLAGS, text)
        except TooLong as error:
            given_up = given_up or f"{plain(pattern)}: {error}"
            continue
        if found is not None:
            return failed(f"{plain(pattern)} matches {quote_around(run.output, *found)}")
    if given_up:
        return inconclusive(given_up)
    return absent(run, passed(f"no match for {', '.join(plain(p, 40) for p in (spec.patterns or ())[:8])}"))


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# Numbers are left as text: their value does not matter here, and huge ones cost quadratic time to convert.
_JSON = json.JSONDecoder(parse_constant=_not_json, parse_int=str, parse_float=str)


@built_in("valid_json", "requires")
def valid_json(_spec: Invariant, run: RunView) -> Verdict:
    """The whole output is one JSON document (RFC 8259: NaN and Infinity are not)."""
    try:
        _JSON.decode(run.output)
    except json.JSONDecodeError as error:
        near = quote_around(run.output, error.pos, error.pos + 1) if run.output.strip() else "an empty output"
        return failed(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}: {near}")
    except ValueError as error:
        return failed(f"not JSON: {error}")
    return passed("the output is valid JSON")


@built_in("output_not_empty", "requires")
def output_not_empty(_spec: Invariant, run: RunView) -> Verdict:
    """The output holds more than white space."""
    if run.output.strip():
        return passed("the output is not empty")
    return failed("the output is only white space" if run.output else "the output is empty")


@built_in("completes", "run")
def completes(_spec: Invariant, run: RunView) -> Verdict:
    """The agent answered: no crash, no time-out, no error of its own. What it answered does not matter."""
    if run.error is not None:
        return failed(brief(str(run.error)))
    return passed("the agent answered")


@built_in("latency", "requires", needs=("max_ms",))
def latency(spec: Invariant, run: RunView) -> Verdict:
    """The whole answer was there within `max_ms`. An agent that gives no answer is not a fast one."""
    limit = spec.max_ms or 0
    if run.latency_ms <= limit:
        return passed(f"answered in {run.latency_ms:,.0f} ms, within {limit:,} ms")
    return failed(f"answered in {run.latency_ms:,.0f} ms, more than {limit:,} ms")
