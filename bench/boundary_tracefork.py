"""What tracefork's recording costs: as `boundary_ours`, run by the Python of tracefork's own environment."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from tracefork import Recorder

from bench.agents import SDKS
from bench.meter import added, first_token_ratio


def main(sdk: str, url: str, calls: int, rounds: int, streams: int) -> None:
    api = SDKS[sdk]
    client = api.client(url)

    @contextmanager
    def bare() -> Iterator[Callable[[], None]]:
        def work() -> None:
            for _ in range(calls):
                api.ask(client)

        yield work

    @contextmanager
    def recorded() -> Iterator[Callable[[], None]]:
        with tempfile.TemporaryDirectory() as folder:

            def work() -> None:
                with Recorder(client) as recorder:
                    for _ in range(calls):
                        api.ask(recorder.client)
                recorder.tape.save(str(Path(folder) / "tape.sqlite"))
                assert len(recorder.tape.exchanges) == calls

            yield work

    def first_recorded_s() -> float:
        with Recorder(client) as recorder:
            return float(api.first_token_s(recorder.client))

    found = added(bare, recorded, calls=calls, rounds=rounds)
    found["first_token"] = first_token_ratio(lambda: api.first_token_s(client), first_recorded_s, rounds=streams)
    print(json.dumps({**found, "sdk": f"{sdk} {version(sdk)}, Python {sys.version_info[0]}.{sys.version_info[1]}"}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
