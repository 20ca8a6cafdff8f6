"""What a tape costs, beside tracefork 1.0.0 and vcrpy: recording, size on disk, replay, memory.

Short calls are made through Anthropic's SDK, as in `boundary`. The growing chat of `chat` (1,000 turns; each request
repeats the conversation so far, 153 MB of requests in all) goes straight into httpx's transport, which is the place
where flakestorm and tracefork stand, so that no SDK's own work hides theirs. What a replay costs as a user has it, from
the tape's file to the verdict, is measured besides: with the same agent, and with one that asks through Anthropic's
SDK. Tools take turns, each in a process of its own, and are compared within the same round; the model is in another
process.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.outcome import Claim, Outcome
from bench.peers import interpreter, peer, ratio
from bench.processes import ask, serving

TRACEFORK = "tracefork==1.0.0"
VCRPY = ("vcrpy==9.4.2", "httpx==0.28.1")
TURNS, VCR_TURNS, ROUNDS, SDK_ROUNDS = 1000, 100, 7, 3
LEAST = "httpx2's own objects and one comparison, nothing else"
SHORT = ("100", "15", "1")  # calls per tape, pairs of a bare and a recorded run, pairs of streams

RECORDED, SIZE, REPLAYED, PEAK_MB = 0.5, 1024, 5.0, 150

Found = dict[str, list[dict[str, float]]]


def measure(*, quick: bool) -> list[Outcome]:
    here = Path(sys.executable)
    pythons: dict[str, tuple[Path, str]] = {"flakestorm": (here, "ours")}
    note = ""
    if not quick:
        if python := interpreter((3, 12)):
            pythons["tracefork 1.0.0"] = peer(TRACEFORK, python=python) / "python", "tracefork"
        else:
            note = " tracefork was left out: it needs Python 3.12 or newer, which is not on this machine."
    outcomes = [_short(pythons, quick=quick, note=note)]
    if not quick:
        pythons["vcrpy 9.4.2"] = peer(*VCRPY) / "python", "vcrpy"
    return [*outcomes, *_chat(pythons, quick=quick, note=note)]


def _short(pythons: dict[str, tuple[Path, str]], *, quick: bool, note: str) -> Outcome:
    found: Found = {name: [] for name in pythons}
    with serving("bench.upstream") as said:
        url = f"http://127.0.0.1:{said['port']}"
        for _ in range(1 if quick else 3):
            for name, (python, script) in pythons.items():
                amounts = ("10", "1", "1") if quick else SHORT
                found[name].append(ask(python, f"bench.boundary_{script}", "anthropic", url, *amounts))
    added = {name: [run["added_us"] for run in runs] for name, runs in found.items()}
    rows = [(name, f"+{statistics.median(values):.0f} us") for name, values in added.items()]
    claims = []
    if "tracefork 1.0.0" in added:
        share = ratio(added["flakestorm"], added["tracefork 1.0.0"])
        claims = [_at_most("recording a short call takes of tracefork's CPU at most", share, RECORDED, "{:.2f}")]
    text = "CPU that recording adds to a call through Anthropic's SDK, writing the tape included." + note
    return Outcome("A tape of short calls", ("", "recording adds"), rows, claims, text)


def _chat(pythons: dict[str, tuple[Path, str]], *, quick: bool, note: str) -> list[Outcome]:
    turns = 60 if quick else TURNS
    found: Found = {name: [] for name in pythons}
    sdk: dict[str, list[dict[str, Any]]] = {}
    least: list[float] = []
    with serving("bench.chat") as said, tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{said['port']}"
        for number in range(1 if quick else ROUNDS):
            for name, (python, script) in pythons.items():
                if script == "vcrpy" and number:
                    continue  # it takes as long as all the rest together
                length = str(VCR_TURNS if script == "vcrpy" else turns)
                tape = str(Path(folder) / f"{script}-{number}.tape")
                run: dict[str, float] = {}
                for what in ("record", "replay"):
                    one: dict[str, Any] = ask(python, f"bench.tape_{script}", what, url, length, tape)
                    run[f"{what}_mb"] = one.pop("peak_mb")
                    run |= one
                found[name].append(run)
            least.append(ask(Path(sys.executable), "bench.tape_least", url, str(turns))["replay_us"])
        for _ in range(1 if quick else SDK_ROUNDS):
            for name, (python, script) in pythons.items():
                if script != "vcrpy":
                    tape = str(Path(folder) / f"{script}.sdk")
                    sdk.setdefault(name, []).append(ask(python, f"bench.tape_{script}", "sdk", url, str(turns), tape))
    middle = _middle(found)
    rows = [
        (
            name,
            f"{VCR_TURNS if script == 'vcrpy' else turns}",
            f"+{middle(name, 'recorded_us') - middle(name, 'bare_us'):.0f} us",
            f"{middle(name, 'bytes'):.0f}",
            f"{middle(name, 'replay_us'):.0f} us",
            f"{1e6 / middle(name, 'replay_us'):.0f}",
            f"{max(middle(name, 'record_mb'), middle(name, 'replay_mb')):.0f} MB",
        )
        for name, (_, script) in pythons.items()
    ]
    floor = statistics.median(least)
    rows.append((LEAST, str(turns), "", "", f"{floor:.0f} us", f"{1e6 / floor:.0f}", ""))
    claims = [] if quick else _judged(found, middle)
    columns = ("", "turns", "recording adds", "bytes per exchange", "replaying one", "replays/s", "peak memory")
    text = (
        "CPU in the transport, per exchange. flakestorm also compares method, URL and headers, takes secrets out and "
        "proves the whole run equal; its tape holds headers and times, and a line is written before the next request. "
        f"vcrpy was given {VCR_TURNS} turns, because its time grows with the square of them and more. The last row is "
        "what no replay in this place can be below: it compares the body's bytes and hands the reply out "
        "(`bench/tape_least.py`)." + note
    )
    return [Outcome("A growing chat", columns, rows, claims, text), _whole(middle, sdk, note)]


def _whole(middle: Callable[[str, str], float], sdk: dict[str, list[dict[str, Any]]], note: str) -> Outcome:
    asked = _middle(sdk)
    rows = [
        (
            name,
            f"{middle(name, 'whole_us'):.0f} us",
            f"{1e6 / middle(name, 'whole_us'):.0f}",
            f"{asked(name, 'sdk_us'):.0f} us",
            f"{1e6 / asked(name, 'sdk_us'):.0f}",
            f"{asked(name, 'sdk_alone_us'):.0f} us ({runs[0]['version']})",
        )
        for name, runs in sdk.items()
    ]
    columns = ("", "in the transport", "replays/s", "through the SDK", "replays/s", "of that the SDK alone")
    text = (
        "CPU of a whole replay, from the tape's file to the verdict, per exchange: flakestorm's `replay` from its "
        "call to its return; tracefork's `Tape.load` and `ReplayVerifier.verify`, which computes the tape's digest. "
        "The agent of the first columns is that of the table above, the making of its requests left out; that of "
        "the others asks through Anthropic's SDK, whose own work on a conversation of so many turns is most of it: "
        "the last column is the same conversation answered at once, with the SDK's version, which differs."
    )
    return Outcome("A growing chat, replayed from file to verdict", columns, rows, (), text + note)


def _judged(found: Found, middle: Callable[[str, str], float]) -> list[Claim]:
    size, peak = (
        middle("flakestorm", "bytes"),
        max(run[at] for run in found["flakestorm"] for at in ("record_mb", "replay_mb")),
    )
    claims = [
        _at_most(f"a chat of {TURNS} turns takes in bytes per exchange at most", size, SIZE, "{:.0f}"),
        _at_most("recording and replaying it take in MB of memory at most", peak, PEAK_MB, "{:.0f}"),
    ]
    if "tracefork 1.0.0" in found:
        ours_us, theirs_us = (
            [run["recorded_us"] - run["bare_us"] for run in found[name]] for name in ("flakestorm", "tracefork 1.0.0")
        )
        claims.append(
            _at_most("recording it takes of tracefork's CPU at most", ratio(ours_us, theirs_us), RECORDED, "{:.2f}")
        )
        theirs, ours = ([run["replay_us"] for run in found[name]] for name in ("tracefork 1.0.0", "flakestorm"))
        times = ratio(theirs, ours)
        text = f"it replays at least {REPLAYED:.0f} times as fast as in tracefork's transport (here {times:.2f} times)"
        claims.append(Claim(text, times >= REPLAYED))
    return claims


def _middle(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Callable[[str, str], float]:
    return lambda name, key: float(statistics.median(run[key] for run in found[name]))


def _at_most(text: str, value: float, limit: float, form: str) -> Claim:
    return Claim(f"{text} {limit:g} (here {form.format(value)})", value <= limit)
