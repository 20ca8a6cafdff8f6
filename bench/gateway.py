"""The gateway, recording, adds at most 1 ms at p50 and serves at least 5 times the requests of mitmproxy.

Upstream, gateway, mitmdump and the load client are processes of their own; mitmdump is a plain reverse proxy that keeps
nothing, while the gateway classifies every call and writes a tape. The arms take turns, and rounds are compared in
pairs. On two cores the three processes of an arm share them, which costs the faster arms most.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.outcome import Claim, Outcome
from bench.peers import peer, ratio, version
from bench.processes import ask, free_port, listening, serving

CONCURRENCY = 32
ADDED_MS, FASTER = 1.0, 5
CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to the upstream.

    Args:
        alone, together: how many requests one by one, and how many by `CONCURRENCY` clients.
    """

    alone: int
    together: int


DIRECT, GATEWAY, MITM = "direct", "flakestorm gateway", "mitmproxy"
FULL = {DIRECT: Arm(600, 6000), GATEWAY: Arm(600, 3000), MITM: Arm(300, 1000)}
QUICK = {DIRECT: Arm(50, 200), GATEWAY: Arm(50, 200)}


def measure(*, quick: bool) -> list[Outcome]:
    arms = QUICK if quick else FULL
    p50_ms: dict[str, list[float]] = {name: [] for name in arms}
    per_s: dict[str, list[float]] = {name: [] for name in arms}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(serving("bench.upstream"))["port"]
        fixed = {DIRECT: (upstream, CHAT)}
        if not quick:
            fixed[MITM] = (stack.enter_context(_mitmproxy(upstream, folder)), CHAT)
        for _ in range(1 if quick else 7):
            with _gateway(upstream, folder) as ours:  # a fresh one, as each run has a recorder of its own
                for name, arm in arms.items():
                    port, path = fixed.get(name, ours)
                    p50_ms[name].append(_load(port, path, arm.alone, 1)["p50_ms"])
                    per_s[name].append(_load(port, path, arm.together, CONCURRENCY)["per_s"])
    return [_outcome(p50_ms, per_s, quick=quick)]


def _outcome(p50_ms: dict[str, list[float]], per_s: dict[str, list[float]], *, quick: bool) -> Outcome:
    added = {
        name: statistics.median(a - b for a, b in zip(of, p50_ms[DIRECT], strict=True)) for name, of in p50_ms.items()
    }
    rows = []
    for name in p50_ms:
        label = name if name != MITM else f"{MITM} {version(peer(MITM), MITM)}"
        extra = "" if name == DIRECT else f"+{added[name]:.2f} ms"
        rate = f"{statistics.median(per_s[name]):,.0f}"
        rows.append((label, f"{statistics.median(p50_ms[name]):.2f} ms", extra, rate))
    claims = []
    if not quick:
        times = ratio(per_s[GATEWAY], per_s[MITM])
        claims = [
            Claim(
                f"the gateway adds at most {ADDED_MS:g} ms at p50 (here {added[GATEWAY]:.2f} ms)", added[GATEWAY] <= 1
            ),
            Claim(f"at least {FASTER} times the requests per second of mitmproxy (here {times:.1f})", times >= FASTER),
        ]
    columns = ("", "p50, one client", "over direct", f"requests/s, {CONCURRENCY} clients")
    note = "The gateway records to disk; mitmproxy forwards only. Medians of rounds in which the arms took turns."
    return Outcome("Gateway", columns, rows, claims, note)


def _load(port: int, path: str, count: int, clients: int) -> dict[str, float]:
    found: dict[str, float] = ask(Path(sys.executable), "bench.load", str(port), path, str(count), str(clients))
    return found


@contextmanager
def _gateway(upstream: int, folder: Path) -> Iterator[tuple[int, str]]:
    with serving("bench.gateway_process", f"http://127.0.0.1:{upstream}/v1", folder / "gateway.jsonl") as said:
        yield said["port"], f"{said['path']}{CHAT}"


@contextmanager
def _mitmproxy(upstream: int, folder: Path) -> Iterator[int]:
    port = free_port()
    command: list[str | Path] = [
        *(peer(MITM) / "mitmdump", "--quiet", "--mode", f"reverse:http://127.0.0.1:{upstream}"),
        *("--listen-host", "127.0.0.1", "--listen-port", str(port), "--set", f"confdir={folder / 'mitmproxy'}"),
        *("--set", "flow_detail=0", "--set", "termlog_verbosity=error"),
    ]
    with listening(command, port):
        yield port
