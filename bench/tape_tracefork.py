"""A growing chat on tracefork's tape: as `tape_ours`, run by the Python of tracefork's own environment."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import anthropic
import httpx2
from tracefork import Recorder
from tracefork.replay import ReplayVerifier
from tracefork.tape import Tape
from tracefork.transport import TraceforkTransport

from bench.chat import converse, cpu_us, peak_mb, timed
from bench.tape_asking import asking, clients, spent_us, told


def main(what: str, url: str, turns: int, path: Path) -> None:
    def cpu_of(transport: httpx2.BaseTransport) -> float:
        return cpu_us(asking(transport, url), turns)

    found: dict[str, float] = {}
    if what == "record":
        found["bare_us"] = cpu_of(httpx2.HTTPTransport())
        tape = Tape()
        found["recorded_us"] = cpu_of(TraceforkTransport("record", tape, httpx2.HTTPTransport()))
        began = time.process_time()
        tape.save(str(path))
        found["recorded_us"] += (time.process_time() - began) / turns * 1e6
        found["bytes"] = path.stat().st_size / turns
    else:
        transport = TraceforkTransport("replay", Tape.load(str(path)))
        found["replay_us"] = cpu_of(transport)
        assert transport.fully_consumed()
        found["peak_mb"] = peak_mb()  # of what both were always asked
        del transport
        aside: list[float] = []

        def agent(client: Any) -> None:
            aside.append(timed(asking(client._client._transport, url), turns)[1])

        began = time.process_time()
        assert ReplayVerifier(Tape.load(str(path)), agent).verify().bit_exact
        found["whole_us"] = (time.process_time() - began - aside[0]) / turns * 1e6
    found.setdefault("peak_mb", peak_mb())
    print(json.dumps(found))


def through_sdk(url: str, turns: int, path: Path) -> None:
    """As in `tape_ours`."""
    client, bare = clients(url)

    def verified() -> None:
        verifier = ReplayVerifier(Tape.load(str(path)), lambda replayed: converse(replayed.messages.create, turns))
        assert verifier.verify().bit_exact

    converse(client.messages.create, 2)  # what is imported once is not counted
    converse(bare.messages.create, 2)
    with Recorder(client) as recorder:
        converse(recorder.client.messages.create, turns)
    recorder.tape.save(str(path))
    del recorder
    found = {
        "sdk_us": spent_us(verified, turns),
        "sdk_alone_us": spent_us(lambda: converse(bare.messages.create, turns), turns),
    }
    print(json.dumps({**found, "version": anthropic.__version__}))


if __name__ == "__main__":
    told(main, through_sdk)
