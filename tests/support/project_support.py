"""A small project that a viewer can start things in: its agent, its world, and a report of it that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from e2e_support import flakestorm, write_config
from upstream import Gate, Upstream, document
from viewer_support import Viewer

__all__ = ["Asking", "Project", "project"]

_AGENT = """
import httpx, sys


def get(path):
    try:
        return httpx.get("{url}" + path, timeout=30).raise_for_status().json()
    except httpx.HTTPError:
        return None


def answer(text):
    print("<img src=x onerror=window.pwned=1> \\x1b[31m", file=sys.stderr)
    flights, weather = get("/flights"), get("/weather")
    return "It is booked." if flights is None else f"{{len(flights)}} flights, {{weather}}."
"""


@dataclass
class Project:
    """A project's folder and its world.

    Args:
        folder: with agent, config and store.
        up: its world; report: the id of its report, of which `r-0002` failed under two faults.
        gate: while set, `/weather` waits for it.
    """

    folder: Path
    up: Upstream
    report: str = ""
    gate: Gate | None = None


@contextmanager
def project(folder: Path) -> Iterator[Project]:
    """One contract run, judged, saved and failed; the world stays up while entered."""
    with Upstream() as up:
        made = Project(folder, up)

        def weather(_: object) -> Any:
            if made.gate is not None:
                made.gate.wait()
            return document("sunny")

        up.reply("/flights", document(["SK 1", "DY 2"]))
        up.reply("/weather", weather)
        (folder / "agent.py").write_text(_AGENT.format(url=up.url))
        down = [{"tool": name, "mode": "error", "error_code": 503} for name in ("flights", "weather")]
        honest = {"id": "honest", "type": "excludes_pattern", "patterns": ["booked"], "severity": "critical"}
        write_config(
            folder,
            agent={"type": "python", "endpoint": "agent:answer"},
            boundary={"tools": {"flights": "*/flights", "weather": "*/weather"}},
            contract={
                "name": "travel",
                "invariants": [honest],
                "chaos_matrix": [{"name": "calm"}, {"name": "down", "tool_faults": down}],
            },
        )
        done = flakestorm(folder, "contract", "run", "-q")
        assert done.code == 1, done.err
        made.report = flakestorm(folder, "report").out.splitlines()[1].split()[0]
        yield made


@dataclass
class Asking:
    """Requests to a viewer, as its own page makes them."""

    viewer: Viewer

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """What a data address answers."""
        asked = {name: str(value) for name, value in query.items()}
        return httpx.get(f"{self.viewer.root}/api/{path}", params=asked, headers=self._headers(), timeout=60).json()

    def post(self, path: str, said: Mapping[str, Any], **other: str | None) -> httpx.Response:
        """Ask for something to be started or ended; `other` headers replace the page's own, None leaves one out."""
        named = {name.replace("_", "-"): value for name, value in other.items()}
        headers = {**self._headers(), "Origin": self.viewer.root, "Content-Type": "application/json", **named}
        sent = {name: value for name, value in headers.items() if value is not None}
        body = json.dumps(said).encode()
        return httpx.post(f"{self.viewer.root}/api/{path}", content=body, headers=sent, timeout=60)

    def _headers(self) -> dict[str, str | None]:
        return {"Authorization": f"Bearer {self.viewer.address.partition('token=')[2]}"}
