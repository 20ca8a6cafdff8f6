"""The gateway, recording, adds at most 0.6 ms at p50 and serves at least 8 times the requests of mitmproxy.

Upstream, gateway, mitmdump and the load client are processes of their own. Both are measured twice: keeping nothing,
and recording (a tape here, `-w` there). The claims are judged on the hardest pair: the gateway while it records,
against a mitmproxy that keeps nothing. The arms take turns, and rounds are compared in pairs. On two cores the three
processes of an arm share them, which costs the faster arms most.
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
ADDED_MS, FASTER = 0.6, 8
CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to the upstream.

    Args:
        alone, together: how many requests one by one, and how many by `CONCURRENCY` clients.
    """

    alone: int
    together: int


DIRECT, GATEWAY, PASSING = "direct", "flakestorm gateway, recording", "flakestorm gateway"
MITM, MITM_KEEPING = "mitmproxy", "mitmproxy, recording"
FULL = {
    DIRECT: Arm(600, 6000),
    PASSING: Arm(600, 3000),
    GATEWAY: Arm(600, 3000),
    MITM: Arm(200, 800),
    MITM_KEEPING: Arm(200, 800),
}
QUICK = {DIRECT: Arm(50, 200), PASSING: Arm(50, 200), GATEWAY: Arm(50, 200)}


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
            fixed[MITM_KEEPING] = (stack.enter_context(_mitmproxy(upstream, folder, "-w", str(folder / "flows"))), CHAT)
        for _ in range(1 if quick else 7):
            # fresh ones, as each run has a recorder of its own
            with _gateway(upstream) as passing, _gateway(upstream, folder / "tape.jsonl") as recording:
                ways = {**fixed, PASSING: passing, GATEWAY: recording}
                for name, arm in arms.items():
                    p50_ms[name].append(_load(*ways[name], arm.alone, 1)["p50_ms"])
                    per_s[name].append(_load(*ways[name], arm.together, CONCURRENCY)["per_s"])
    return [_outcome(p50_ms, per_s, quick=quick)]


def _outcome(p50_ms: dict[str, list[float]], per_s: dict[str, list[float]], *, quick: bool) -> Outcome:
    added = {
        name: statistics.median(a - b for a, b in zip(of, p50_ms[DIRECT], strict=True)) for name, of in p50_ms.items()
    }
    rows = []
    for name in p50_ms:
        label = name if not name.startswith(MITM) else name.replace(MITM, f"{MITM} {version(peer(MITM), MITM)}")
        extra = "" if name == DIRECT else f"+{added[name]:.2f} ms"
        rate = f"{statistics.median(per_s[name]):,.0f}"
        rows.append((label, f"{statistics.median(p50_ms[name]):.2f} ms", extra, rate))
    claims = []
    if not quick:
        times = ratio(per_s[GATEWAY], per_s[MITM])
        claims = [
            Claim(
                f"the gateway adds at most {ADDED_MS:g} ms at p50 (here {added[GATEWAY]:.2f} ms)",
                added[GATEWAY] <= ADDED_MS,
            ),
            Claim(f"at least {FASTER} times the requests per second of mitmproxy (here {times:.1f})", times >= FASTER),
        ]
    columns = ("", "p50, one client", "over direct", f"requests/s, {CONCURRENCY} clients")
    note = (
        "Medians of rounds in which the arms took turns. The claims compare the recording gateway with plain mitmproxy."
    )
    return Outcome("Gateway", columns, rows, claims, note)


def _load(port: int, path: str, count: int, clients: int) -> dict[str, float]:
    found: dict[str, float] = ask(Path(sys.executable), "bench.load", str(port), path, str(count), str(clients))
    return found


@contextmanager
def _gateway(upstream: int, *tape: Path) -> Iterator[tuple[int, str]]:
    with serving("bench.gateway_process", f"http://127.0.0.1:{upstream}/v1", *tape) as said:
        yield said["port"], f"{said['path']}{CHAT}"


@contextmanager
def _mitmproxy(upstream: int, folder: Path, *extra: str) -> Iterator[int]:
    port = free_port()
    command: list[str | Path] = [
        *(peer(MITM) / "mitmdump", "--quiet", "--mode", f"reverse:http://127.0.0.1:{upstream}"),
        *("--listen-host", "127.0.0.1", "--listen-port", str(port), "--set", f"confdir={folder / 'mitmproxy'}"),
        *("--set", "flow_detail=0", "--set", "termlog_verbosity=error", *extra),
    ]
    with listening(command, port):
        yield port
