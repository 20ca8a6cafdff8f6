"""A gateway that tells how it feels: `python -m bench.soak_gateway passing|run|standing UPSTREAM_URL TAPE`.

`passing` records nothing, `run` is the line of one recorded run, `standing` is what `flakestorm gateway` is. Prints
`{"port": N, "path": "/r/TOKEN/p/openai"}`, then, for every line on its input, its tasks, open files, memory and calls;
with the end of the input it finishes the tape and ends.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from bench.recorded import recorded_run
from flakestorm.boundary.hub import Hub
from flakestorm.boundary.standing import Standing


@asynccontextmanager
async def open_gateway(kind: str, upstream: str, tape: Path) -> AsyncIterator[str]:
    """The URL of the provider on a gateway of this kind."""
    environ = {"OPENAI_BASE_URL": upstream}
    if kind == "standing":
        standing = Standing(tape=tape, store=tape.parent, environ=environ)
        await standing.start()
        try:
            yield standing.variables["OPENAI_BASE_URL"]
        finally:
            await standing.close()
        return
    hub = Hub(environ=environ)
    channel = await hub.channel({})
    try:
        if kind == "run":
            with recorded_run(tape) as line, channel.bind(line):
                yield channel.env["OPENAI_BASE_URL"]
                await hub.close()
        else:
            yield channel.env["OPENAI_BASE_URL"]
    finally:
        await hub.close()


def feels() -> dict[str, int]:
    """Tasks, open files and resident memory of this process, in KiB, after the collector has been by."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    resident = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    files = [*Path("/proc/self/fd").iterdir()]
    return {"tasks": len(asyncio.all_tasks()), "files": len(files), "rss_kib": int(resident)}


async def main(kind: str, upstream: str, tape: Path) -> None:
    async with open_gateway(kind, upstream, tape) as url:
        parts = urlsplit(url)
        print(json.dumps({"port": parts.port, "path": parts.path}), flush=True)
        while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            print(json.dumps(feels()), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
