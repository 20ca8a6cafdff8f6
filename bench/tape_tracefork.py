"""A growing chat on tracefork's tape: as `tape_ours`, run by the Python of tracefork's own environment."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import httpx2
from tracefork.tape import Tape
from tracefork.transport import TraceforkTransport

from bench.chat import PATH, cpu_us

HEADERS = {"content-type": "application/json", "x-api-key": "sk-ant-none", "anthropic-version": "2023-06-01"}


def main(what: str, url: str, turns: int, path: Path) -> None:
    def cpu_of(transport: httpx2.BaseTransport) -> float:
        def ask(body: bytes) -> bytes:
            request = httpx2.Request("POST", f"{url}{PATH}", headers=HEADERS, content=body)
            response = transport.handle_request(request)
            try:
                return response.read()
            finally:
                response.close()

        return cpu_us(ask, turns)

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
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
