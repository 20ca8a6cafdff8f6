"""The gateway in a process of its own: `python -m bench.gateway_process UPSTREAM_URL [TAPE]`.

With a tape, everything crosses on the line of one recorded run; without, it passes untouched. Prints
`{"port": N, "path": "/r/TOKEN/p/openai"}` and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from contextlib import ExitStack
from pathlib import Path

import uvloop

from bench.recorded import recorded_run
from flakestorm.boundary.hub import Hub
from flakestorm.cli.main import GC_THRESHOLDS


async def main(upstream: str, tape: Path | None) -> None:
    hub = Hub(environ={})
    channel = await hub.channel({"OPENAI_BASE_URL": upstream})
    gateway = await hub.gateway()
    with ExitStack() as stack:
        if tape is not None:
            stack.enter_context(channel.bind(stack.enter_context(recorded_run(tape))))
        print(json.dumps({"port": gateway.port, "path": f"/r/{channel.token}/p/openai"}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    gc.set_threshold(*GC_THRESHOLDS)  # as every command has them
    uvloop.run(main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None))
