"""A growing chat on flakestorm's tape: `python -m bench.tape_ours record|replay|sdk URL TURNS TAPE` prints JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2

import flakestorm
from bench.chat import PATH, answer, asked, converse, cpu_us, peak_mb, timed

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

    def alone(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=json.loads(answer(request.content.count(b'"role":"user"') - 1)))

    def spent_us(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return (time.process_time() - began) / turns * 1e6

    client = anthropic.Anthropic(base_url=url, api_key="sk-ant-none", max_retries=0)
    answered = httpx2.Client(transport=httpx2.MockTransport(alone))
    bare = anthropic.Anthropic(base_url=url, api_key="sk-ant-none", max_retries=0, http_client=answered)

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
        "sdk_us": spent_us(lambda: flakestorm.replay(tape, agent)),
        "sdk_alone_us": spent_us(lambda: converse(bare.messages.create, turns)),
    }
    print(json.dumps({**found, "version": anthropic.__version__}))


if __name__ == "__main__":
    if sys.argv[1] == "sdk":
        through_sdk(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
