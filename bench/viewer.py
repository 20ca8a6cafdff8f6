"""The viewer in a real Chromium: first paint and scrolling of a tape of 5,000 exchanges, beside one of 50.

First paint is the browser's own figure, and the exchanges are there when the first of their lines is on the page; both
count from the click, with a viewer that has just been started and has read nothing yet. Scrolling goes from the first
exchange to the last in equal steps, one for each frame, and looks at how long frames took.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.outcome import Claim, Outcome
from bench.peers import as_installed, ours
from flakestorm.core.call import Call, Reply
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain, drive
from flakestorm.core.site import Site
from flakestorm.core.stream import pump
from flakestorm.tape.writer import Recorder

SIZES = (50, 5_000)
STEPS, QUICK = 240, 30
PAINT_S, LIST_S, FRAME_MS = 1.0, 3.0, 50.0
JSON = (("content-type", "application/json"),)
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"]

NOTING = """
new MutationObserver((_, watching) => {
  if (document.querySelector(".exchange-line")) { window.there = performance.now(); watching.disconnect(); }
}).observe(document, { childList: true, subtree: true });
"""
SCROLLING = """async (steps) => {
  const box = document.querySelector(".rows"), frame = () => new Promise(requestAnimationFrame), took = [];
  let before = await frame();
  for (let step = 1; step <= steps; step += 1) {
    box.scrollTop = (box.scrollHeight - box.clientHeight) * step / steps;
    const now = await frame();
    took.push(now - before);
    before = now;
  }
  return took;
}"""


def measure(*, quick: bool) -> list[Outcome]:
    binary = os.environ.get("FLAKESTORM_CHROMIUM") or shutil.which("chromium")
    if binary is None:
        raise SystemExit("there is no chromium to measure in; `make browser` installs one")
    from playwright.sync_api import sync_playwright

    found: dict[int, list[dict[str, Any]]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        for size in SIZES:
            recorded(folder / ".flakestorm" / "tapes" / f"{size}.tape", size)
        browser = playwright.chromium.launch(executable_path=binary, args=ARGS)
        for _ in range(1 if quick else 7):
            for size in SIZES:
                with viewing(folder) as address:
                    found[size].append(looked_at(browser, address, size, QUICK if quick else STEPS))
        browser.close()
    rows, paint_s, list_s, frames = [], {}, {}, {}
    for size, each in found.items():
        paint_s[size] = statistics.median(one["paint"] for one in each) / 1000
        list_s[size] = statistics.median(one["there"] for one in each) / 1000
        frames[size] = sorted(took for one in each for took in one["frames"])
        shown = (quantile(frames[size], 0.5), quantile(frames[size], 0.95), frames[size][-1])
        times = [f"{paint_s[size] * 1000:.0f} ms", f"{list_s[size] * 1000:.0f} ms"]
        rows.append((f"{size:,} exchanges", *times, *(f"{ms:.1f} ms" for ms in shown)))
    columns = ("", "first paint", "exchanges there", "frame, median", "frame, 95 of 100", "frame, longest")
    note = f"Chromium without a GPU; the list is scrolled from end to end in {STEPS} frames."
    return [Outcome("A tape in the viewer", columns, rows, [] if quick else claims(paint_s, list_s, frames), note)]


def claims(paint_s: dict[int, float], list_s: dict[int, float], frames: dict[int, list[float]]) -> list[Claim]:
    size = SIZES[-1]
    late = quantile(frames[size], 0.95)
    return [
        Claim(f"first paint with {size:,} exchanges within {PAINT_S:g} s (here {paint_s[size]:.2f} s)",
              paint_s[size] <= PAINT_S),
        Claim(f"{size:,} exchanges are there within {LIST_S:g} s (here {list_s[size]:.2f} s)", list_s[size] <= LIST_S),
        Claim(f"95 of 100 frames of scrolling through them take at most {FRAME_MS:g} ms (here {late:.1f} ms)",
              late <= FRAME_MS),
    ]  # fmt: skip


def quantile(ordered: list[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def looked_at(browser: Any, address: str, size: int, steps: int) -> dict[str, Any]:
    """One look at the tape of this size: `paint` and `there` in ms, `frames` in ms each."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(NOTING)
    page.goto(address)
    page.locator("h1").wait_for()
    root = address.partition("/?")[0]
    page.goto(f"{root}/tape?path=tapes/{size}.tape")
    page.locator(".exchange-line").first.wait_for()
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    found = {"paint": paint, "there": page.evaluate("window.there"), "frames": page.evaluate(SCROLLING, steps)}
    page.locator(".exchange-line", has_text=f"tool/search#{size // 2}").wait_for()  # the last one, so it was scrolled
    context.close()
    return found


@contextmanager
def viewing(folder: Path) -> Iterator[str]:
    """`flakestorm view` of this folder; gives the address it prints."""
    binary = ours() / "flakestorm"
    process = subprocess.Popen(
        [binary, "view", "--no-open", "--quiet"],
        cwd=folder,
        env=as_installed(binary),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def recorded(path: Path, exchanges: int) -> None:
    """A tape of a chat that grows: every second call asks the model, the other is the tool it asked for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    now_s = [0.0]
    recorder = Recorder(path, clock=lambda: now_s[0], ledger=Ledger(), header={"run": "bench", "input": "to Oslo"})
    stage = chain(recorder.outer, recorder.inner)

    def site(kind: Any, name: str, n: int) -> Site:
        return Site(kind, name, n // 2 + 1)

    turns = [{"role": "user", "content": "a flight to Oslo"}]
    for n in range(exchanges):
        now_s[0] += 0.02
        body, name = json.dumps({"model": "gpt-4o", "messages": turns[-40:]}).encode(), f"flight {n}"
        if n % 2:
            at = site("tool", "search", n)
            call = Call("GET", f"http://127.0.0.1:9/search?q={n}", kind="tool", name="search", site=at)
        else:
            url, at = "https://api.openai.com/v1/chat/completions", site("llm", "gpt-4o", n)
            call = Call("POST", url, JSON, body, kind="llm", name="gpt-4o", wire="openai_chat", site=at)
            turns.append({"role": "assistant", "content": name})
        said = Reply(200, JSON, json.dumps({"says": name}).encode())
        for _ in pump(drive(stage(call), lambda _, said=said: said, lambda _: None), lambda _: None):
            pass
    recorder.close(output="done")
