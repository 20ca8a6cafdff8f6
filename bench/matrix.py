"""The same contract, 4 invariants x 5 scenarios x 4 prompts on a 50 ms agent: at least 15 times faster than 2.0.0.

Both run as commands against one HTTP agent; the agent counts what it is asked. 2.0.0 asks once per invariant, scenario
and prompt, one at a time; flakestorm judges all invariants of a scenario on the same runs, ten at a time.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from aiohttp import web

from bench.peers import medians, ours, peer, row, verdict

CONFIG = """
version: "2.0"
agent: {{endpoint: "{url}/invoke", reset_endpoint: "{url}/reset", timeout: 5000}}
golden_prompts: ["book a flight", "cancel it", "what does it cost?", "who are you?"]
invariants: [{{type: output_not_empty}}]
contract:
  name: bench
  invariants:
    - {{id: not-empty, type: output_not_empty, severity: critical}}
    - {{id: says-done, type: contains, value: done}}
    - {{id: quick, type: latency, max_ms: 4000}}
    - {{id: completes, type: completes}}
  chaos_matrix:
    - {{name: calm}}
    - {{name: search-down, tool_faults: [{{tool: search, mode: error, error_code: 503}}]}}
    - {{name: pay-slow, tool_faults: [{{tool: pay, mode: slow, delay_ms: 10}}]}}
    - {{name: cut-short, llm_faults: [{{mode: truncated_response, max_tokens: 20}}]}}
    - {{name: limited, llm_faults: [{{mode: rate_limit}}]}}
output: {{path: "{reports}"}}
advanced: {{concurrency: 10}}
"""


class SlowAgent:
    """An HTTP agent that takes 50 ms and counts, on a loop in a thread of its own."""

    def __init__(self) -> None:
        self.asked = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self.url = ""
        threading.Thread(target=self._run, daemon=True).start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._ready.set()
        self._loop.run_forever()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_post("/invoke", self._invoke)
        app.router.add_post("/reset", self._reset)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def _invoke(self, _: web.Request) -> web.Response:
        self.asked += 1
        await asyncio.sleep(0.05)
        return web.json_response({"output": "done"})

    async def _reset(self, _: web.Request) -> web.Response:
        return web.json_response({})


def main() -> bool:
    agent = SlowAgent()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "flakestorm.yaml"
        config.write_text(CONFIG.format(url=agent.url, reports=folder))
        asked: dict[str, int] = {}

        def run(name: str, binary: Path) -> float:
            agent.asked, start = 0, time.perf_counter()
            done = subprocess.run(
                [binary, "contract", "run", "-c", config], cwd=folder, capture_output=True, check=False
            )
            seconds = time.perf_counter() - start
            asked[name] = agent.asked
            if not agent.asked:
                raise SystemExit(f"{name} did not run: {done.stderr.decode()}")
            return seconds

        old, new = peer("flakestorm==2.0.0") / "flakestorm", ours() / "flakestorm"
        found = medians({"ours": lambda: run("ours", new), "2.0.0": lambda: run("2.0.0", old)}, rounds=3)
    row("", ["wall time", "agent runs"])
    for name, seconds in found.items():
        row(name, [f"{seconds:.2f} s", str(asked[name])])
    print(json.dumps({"seconds": found, "agent_runs": asked}))
    ratio = found["2.0.0"] / found["ours"]
    return verdict(f"at least 15 times faster at concurrency 10 (here {ratio:.1f} times)", ratio >= 15) and verdict(
        "20 agent runs for 4 invariants x 5 scenarios x 4 prompts", asked["ours"] == 20
    )


if __name__ == "__main__":
    main()
