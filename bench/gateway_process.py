"""The gateway in a process of its own, recording: `python -m bench.gateway_process UPSTREAM_URL TAPE`.

Prints `{"port": N, "path": "/r/TOKEN/p/openai"}` and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import uvloop

from bench.recorded import recorded_run
from flakestorm.boundary.hub import Hub


async def main(upstream: str, tape: Path) -> None:
    hub = Hub(environ={})
    channel = await hub.channel({"OPENAI_BASE_URL": upstream})
    gateway = await hub.gateway()
    with recorded_run(tape) as line, channel.bind(line):
        print(json.dumps({"port": gateway.port, "path": f"/r/{channel.token}/p/openai"}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], Path(sys.argv[2])))
