"""A growing chat in a vcrpy cassette: as `tape_ours`, run by the Python of vcrpy's own environment.

The whole request is compared, as flakestorm and tracefork do; by default vcrpy looks at method and URL only.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import httpx
import vcr

from bench.chat import HEADERS, PATH, cpu_us, peak_mb


def main(what: str, url: str, turns: int, path: Path) -> None:
    client = httpx.Client(timeout=60)

    def ask(body: bytes) -> bytes:
        return client.post(f"{url}{PATH}", headers=HEADERS, content=body).content

    taped = vcr.VCR(match_on=["method", "uri", "body"], record_mode="all" if what == "record" else "none")
    found: dict[str, float] = {}
    if what == "record":
        found["bare_us"] = cpu_us(ask, turns)
        with taped.use_cassette(str(path)):
            found["recorded_us"] = cpu_us(ask, turns)
            began = time.process_time()
        found["recorded_us"] += (time.process_time() - began) / turns * 1e6
        found["bytes"] = path.stat().st_size / turns
    else:
        with taped.use_cassette(str(path)):
            found["replay_us"] = cpu_us(ask, turns)
    found["peak_mb"] = peak_mb()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
