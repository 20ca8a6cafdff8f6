"""CPU time to scan a document of 10 kB that was never seen before; the same patterns on Python's `re` beside it."""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Callable
from functools import partial

from bench.outcome import Outcome
from bench.peers import ROOT, take_turns
from flakestorm.patterns.engine import Document, Matcher, rows_of
from flakestorm.patterns.injection import injection_rows, injections
from flakestorm.patterns.scanner import scan

SIZE = 10_240


def measure(*, quick: bool) -> list[Outcome]:
    prose = " ".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/**/*.md")))
    unseen = partial(_document, random.Random(1), re.split(r"(?<=[.!?])\s+", prose))
    patterns = [*(row["pattern"] for row in injection_rows()), *(row["pattern"] for row in rows_of("pii.yaml"))]
    plain = Matcher(patterns, re2=None, together=False)
    arms: dict[str, Callable[[], float]] = {
        "flakestorm, injections": partial(_cpu_s, injections, unseen),
        "flakestorm, personal data": partial(_cpu_s, scan, unseen),
    }
    if not quick:
        arms["every pattern in turn with Python's re"] = partial(_cpu_s, partial(_in_turn, plain), unseen)
    found = take_turns(arms, rounds=3 if quick else 40, warm_up=True)
    rows = [(name, f"{statistics.median(seconds) * 1000:.2f} ms") for name, seconds in found.items()]
    return [Outcome("Scan: a document of 10 kB, each one new", ("", "CPU time"), rows)]


def _document(rng: random.Random, sentences: list[str]) -> str:
    text = ""
    while len(text) < SIZE:
        text += rng.choice(sentences) + " "
    return text[:SIZE]


def _in_turn(matcher: Matcher, text: str) -> None:
    document = Document(text)
    for index in range(len(matcher.compiled)):
        any(True for _ in matcher.places(index, document))


def _cpu_s(work: Callable[[str], object], unseen: Callable[[], str]) -> float:
    text = unseen()
    before = time.process_time()
    work(text)
    return time.process_time() - before
