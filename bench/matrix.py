"""The same contract, 4 invariants x 5 scenarios x 4 prompts on a 50 ms agent: at least 20 times faster than 2.0.0.

Both run as commands against one HTTP agent; the agent counts what it is asked. 2.0.0 asks once per invariant, scenario
and prompt, one at a time; flakestorm judges all invariants of a scenario on the same runs, ten at a time.

Two clocks tell two things: the command's, from its start to its end, and the agent's own, from its first request to its
last reply, which leaves out starting up, reading the config and writing reports.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from aiohttp import web

from bench.outcome import Claim, Outcome
from bench.peers import as_installed, ours, peer, ratio, take_turns

OLD = "flakestorm 2.0.0"
FASTER = 20
IDEAL_S, WITHIN = 20 * 0.05 / 10, 1.2
"""Calls x latency / concurrency, and how many times that may pass between the first request and the last reply."""

CONFIG = """
version: "2.0"
agent: {{endpoint: "{url}/invoke", timeout: 5000}}
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
        self._first_s = self._last_s = 0.0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self.url = ""
        threading.Thread(target=self._run, daemon=True).start()
        self._ready.wait()

    def begin(self) -> None:
        """Count from here."""
        self.asked = 0
        self._first_s = self._last_s = 0.0

    @property
    def busy_s(self) -> float:
        """From the first request to the last reply, in seconds."""
        return self._last_s - self._first_s

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._ready.set()
        self._loop.run_forever()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_post("/invoke", self._invoke)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def _invoke(self, _: web.Request) -> web.Response:
        self.asked += 1
        self._first_s = self._first_s or time.perf_counter()
        await asyncio.sleep(0.05)
        self._last_s = time.perf_counter()
        return web.json_response({"output": "done"})


def measure(*, quick: bool) -> list[Outcome]:
    agent = SlowAgent()
    asked: dict[str, int] = {}
    busy_s: dict[str, list[float]] = {}

    def run(name: str, binary: Path) -> float:
        agent.begin()
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "flakestorm.yaml"
            config.write_text(CONFIG.format(url=agent.url, reports=folder))
            start = time.perf_counter()
            done = subprocess.run(
                [binary, "contract", "run", "-c", config],
                cwd=folder,
                capture_output=True,
                check=False,
                env=as_installed(binary),
            )
            seconds = time.perf_counter() - start
        asked[name] = agent.asked
        busy_s.setdefault(name, []).append(agent.busy_s)
        if not agent.asked:
            raise SystemExit(f"{name} did not run: {done.stderr.decode()}")
        return seconds

    arms: dict[str, Callable[[], float]] = {"flakestorm": partial(run, "flakestorm", ours() / "flakestorm")}
    if not quick:
        arms[OLD] = partial(run, OLD, peer("flakestorm==2.0.0") / "flakestorm")
    found = take_turns(arms, rounds=1 if quick else 3, warm_up=True)
    rows = [
        (name, f"{statistics.median(s):.2f} s", f"{statistics.median(busy_s[name][1:]):.2f} s", str(asked[name]))
        for name, s in found.items()
    ]
    claims = [Claim("4 invariants x 5 scenarios x 4 prompts are judged on 20 agent runs", asked["flakestorm"] == 20)]
    if not quick:
        faster = ratio(found[OLD], found["flakestorm"])
        text = f"at least {FASTER} times faster than {OLD} at concurrency 10 (here {faster:.1f} times)"
        claims.append(Claim(text, faster >= FASTER))
        busy = statistics.median(busy_s["flakestorm"][1:]) / IDEAL_S
        text = f"the agent is busy for at most {WITHIN:g} times calls x latency / concurrency (here {busy:.2f} times)"
        claims.append(Claim(text, busy <= WITHIN))
    title = "A contract of 4 invariants x 5 scenarios x 4 prompts, agent of 50 ms"
    return [Outcome(title, ("", "wall time of the command", "first request to last reply", "agent runs"), rows, claims)]
