"""A growing chat on flakestorm's tape: `python -m bench.tape_ours record|replay|sdk URL TURNS TAPE` prints JSON."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx2

import flakestorm
from bench.chat import asked, converse, cpu_us, peak_mb, timed
from bench.tape_asking import asking, clients, spent_us, told


def main(what: str, url: str, turns: int, tape: Path) -> None:
    ask = asking(httpx2.HTTPTransport(), url)

    found: dict[str, float] = {}
    with flakestorm.record(tape.with_suffix(".warm")):  # what is imported once is not counted
        ask(next(asked(1)))
    flakestorm.replay(tape.with_suffix(".warm"), lambda: ask(next(asked(1))))
    if what == "record":
        found["bare_us"] = cpu_us(ask, turns)
        began = time.process_time()
        with flakestorm.record(tape):
            opened = time.process_time() - began
            found["recorded_us"] = cpu_us(ask, turns)
            began = time.process_time()
        found["recorded_us"] += (opened + time.process_time() - began) / turns * 1e6
        found["bytes"] = tape.stat().st_size / turns
    else:

        def agent() -> None:
            spent, found["aside_s"] = timed(ask, turns)
            found["replay_us"] = spent / turns * 1e6

        began = time.process_time()
        flakestorm.replay(tape, agent)  # raises where anything differs
        found["whole_us"] = (time.process_time() - began - found.pop("aside_s")) / turns * 1e6
    found["peak_mb"] = peak_mb()
    print(json.dumps(found))


def through_sdk(url: str, turns: int, tape: Path) -> None:
    """As a user has it: Anthropic's own client, from the tape's file to the verdict; and that client alone, answered at
    once."""
    import anthropic

    client, bare = clients(url)

    def agent() -> None:
        converse(client.messages.create, turns)

    for warm in (client, bare):  # what is imported once is not counted
        with flakestorm.record(tape):
            converse(warm.messages.create, 2)
    with flakestorm.record(tape):
        converse(client.messages.create, 2)
    flakestorm.replay(tape, lambda: converse(client.messages.create, 2))
    with flakestorm.record(tape):
        agent()
    found = {
        "sdk_us": spent_us(lambda: flakestorm.replay(tape, agent), turns),
        "sdk_alone_us": spent_us(lambda: converse(bare.messages.create, turns), turns),
    }
    print(json.dumps({**found, "version": anthropic.__version__}))


if __name__ == "__main__":
    told(main, through_sdk)
