"""Which step it was: synthetic failures of 100 steps whose causes are known, beside tracefork's ranking of the same."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from bench.blame_worlds import STEPS, WORLDS, Tally, tally
from bench.outcome import Claim, Outcome
from bench.peers import ROOT, peer
from flakestorm.core.choices import Choices

TRIALS, PEER_TRIALS = 1000, 40


def measure(*, quick: bool) -> list[Outcome]:
    found = {name: tally(name, 20 if quick else TRIALS) for name in WORLDS}
    rows = [_row(f"flakestorm, {name}", each) for name, each in found.items()]
    if not quick:
        rows += [_peer(name) for name in WORLDS]
    return [
        Outcome(
            f"Blame: {STEPS} steps, causes known",
            ("", "exactly right", "some step named", "innocent steps blamed, of all", "continuations, mean (most)"),
            rows,
            [] if quick else _claims(found),
        )
    ]


def _claims(found: dict[str, Tally]) -> list[Claim]:
    covered = sum(each.covered for each in found.values()) / sum(each.intervals for each in found.values())
    innocent = found["no culprit"].named / found["no culprit"].trials
    coin = found["coin flip"].blamed / found["coin flip"].trials / STEPS
    return [
        *(
            Claim(f"{name}: exactly right in at least {least:.0%}", found[name].right / found[name].trials >= least)
            for name, least in (("clean jump", 0.97), ("leaky jump", 0.97), ("two causes", 0.9))
        ),
        Claim("no culprit: a step is named in at most 5%", innocent <= 0.05),
        Claim("coin flip: at most 5% of steps are blamed", coin <= 0.05),
        Claim("95% intervals hold the truth in at least 94%", covered >= 0.94),
        Claim("at most 450 continuations", max(each.most for each in found.values()) <= 450),
    ]


def _row(name: str, found: Tally) -> tuple[str, ...]:
    return (
        name,
        f"{found.right / found.trials:.1%}",
        f"{found.named / found.trials:.1%}",
        f"{found.blamed / found.trials / STEPS:.2%}",
        f"{found.spent / found.trials:.0f} ({found.most})",
    )


def _peer(name: str) -> tuple[str, ...]:
    """The steps that tracefork holds responsible, at its default of ten forks of each step."""
    worlds = []
    for trial in range(PEER_TRIALS):
        draw = Choices(1, "blame", name).stream(trial)
        worlds.append(WORLDS[name](draw, STEPS))
    python = peer("tracefork==1.0.0") / "python"
    told = json.dumps([[world.curve, seed] for seed, world in enumerate(worlds)])
    done = subprocess.run(
        [python, "-m", "bench.blame_tracefork"], input=told, cwd=ROOT, capture_output=True, text=True, check=True
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    pairs = list(zip(worlds, answers, strict=True))
    right = sum(set(answer["responsible"]) == world.causes for world, answer in pairs)
    named = sum(bool(answer["responsible"]) for answer in answers)
    blamed = sum(len(set(answer["responsible"]) - world.causes) for world, answer in pairs)
    return (
        f"tracefork 1.0.0, {name}",
        f"{right / len(pairs):.1%}",
        f"{named / len(pairs):.1%}",
        f"{blamed / len(pairs) / STEPS:.2%}",
        f"{10 * STEPS} ({10 * STEPS})",
    )
