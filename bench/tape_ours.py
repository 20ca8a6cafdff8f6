"""A growing chat on flakestorm's tape: `python -m bench.tape_ours record|replay URL TURNS TAPE` prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import httpx2

import flakestorm
from bench.chat import PATH, asked, cpu_us

HEADERS = {"content-type": "application/json", "x-api-key": "sk-ant-none", "anthropic-version": "2023-06-01"}


def main(what: str, url: str, turns: int, tape: Path) -> None:
    transport = httpx2.HTTPTransport()

    def ask(body: bytes) -> bytes:
        request = httpx2.Request("POST", f"{url}{PATH}", headers=HEADERS, content=body)
        response = transport.handle_request(request)
        try:
            return response.read()
        finally:
            response.close()

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
            found["replay_us"] = cpu_us(ask, turns)

        flakestorm.replay(tape, agent)
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
