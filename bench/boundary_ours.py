"""What recording costs in process: `python -m bench.boundary_ours SDK URL CALLS ROUNDS STREAMS` prints it as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from bench.agents import SDKS
from bench.meter import added, first_token_ratio
from bench.recorded import recorded_run
from flakestorm.boundary import inprocess


def main(sdk: str, url: str, calls: int, rounds: int, streams: int) -> None:
    api = SDKS[sdk]
    client = api.client(url)

    def ask_all() -> None:
        for _ in range(calls):
            api.ask(client)

    def ask_recorded() -> None:
        with recorded_run(tape) as line, line.active():
            ask_all()

    @contextmanager
    def bare() -> Iterator[Callable[[], None]]:
        yield ask_all

    @contextmanager
    def recorded() -> Iterator[Callable[[], None]]:
        with inprocess.held():
            yield ask_recorded

    def first_recorded_s() -> float:
        with inprocess.held(), recorded_run(tape) as line, line.active():
            return float(api.first_token_s(client))

    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "tape.jsonl"
        found = added(bare, recorded, calls=calls, rounds=rounds)
        assert len(tape.read_bytes().splitlines()) == calls + 2  # header and footer
        found["first_token"] = first_token_ratio(lambda: api.first_token_s(client), first_recorded_s, rounds=streams)
    print(json.dumps({**found, "sdk": f"{sdk} {version(sdk)}"}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
