"""Invariants on what a run used up: tokens, money, and tries.

Tokens are those that the providers counted, of the replies that the world really gave: what a fault answered in its
place was never billed, and what a fault changed on the way was billed as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.calls import ToolCall, is_call, tool_calls
from flakestorm.contracts.evidence import plain
from flakestorm.contracts.failures import call_failed
from flakestorm.contracts.trajectory import COUNTED, vet_kind
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.tape.billing import billed
from flakestorm.tape.model import Exchange
from flakestorm.wire.base import Usage
from flakestorm.wire.prices import Price, cost, price_of

__all__ = ["RETRIES", "WINDOW_MS"]

RETRIES = 5
WINDOW_MS = 10_000
"""How often the same call may be made in how long, where the rule does not say."""


@built_in("max_tokens", "forbids", needs=("limit",), evidence="tape")
def max_tokens(spec: Invariant, run: RunView) -> Verdict:
    """All model calls of the run together used at most `limit` tokens, input and output.

    Retries count. Where a reply does not say how many it was (a stream that was not asked for its usage, say), the run
    may still fail by the others alone, but cannot pass.
    """
    limit, models = spec.limit or 0, [x for x in run.exchanges if x.kind == "llm"]
    counts = [(x, billed(x)) for x in models]
    total = sum((usage.input or 0) + (usage.output or 0) for _, usage in counts if usage is not None)
    silent = [x for x, usage in counts if usage is None or (usage.input is None and usage.output is None)]
    unknown = f"{_some(silent)} did not say how many tokens it used" if silent else ""
    return _within(limit, total, f"{total:,} tokens in", len(models), unknown, run)


@built_in("max_cost", "forbids", needs=("limit",), evidence="tape")
def max_cost(spec: Invariant, run: RunView) -> Verdict:
    """All model calls of the run together cost at most `limit` US dollars, by list prices (`wire/prices.yaml`) and,
    before them, `prices`.

    Tokens are counted as for `max_tokens`. A model without a price is not free: the run may still fail by the others
    alone, but cannot pass.
    """
    own = {name: Price(price.input, price.output) for name, price in (spec.prices or {}).items()}
    limit, models, total = spec.limit or 0, [x for x in run.exchanges if x.kind == "llm"], 0.0
    unknown: dict[str, None] = {}
    for exchange in models:
        usage = billed(exchange)
        if usage == Usage(0, 0):
            continue
        price = price_of(exchange.name, own)
        if price is None:
            unknown[f"the price of {plain(exchange.name, 60)} is not known; write it in 'prices'"] = None
        elif usage is None or (usage.input is None and usage.output is None):
            unknown[f"{exchange.site} did not say how many tokens it used"] = None
        else:
            total += cost(usage, price)
    return _within(limit, total, f"{total:.6f} US dollars for", len(models), "; ".join(list(unknown)[:3]), run)


def _within(limit: float, total: float, what: str, models: int, unknown: str, run: RunView) -> Verdict:
    what = f"{what} {models} model calls"
    if total > limit:
        return failed(f"{what}, more than {limit:,}")
    if unknown:
        return inconclusive(f"{what}, but {unknown}")
    if models:
        return passed(f"{what}, at most {limit:,} allowed")
    if run.exchanges:
        return passed("no model was called")
    return inconclusive("nothing crossed the boundary, so nobody knows whether a model was called")


@built_in("no_retry_storm", "forbids", evidence="tape", vet=vet_kind)
def no_retry_storm(spec: Invariant, run: RunView) -> Verdict:
    """No call that failed was made again and again: at most `limit` times (5) within any `window_ms` (10000).

    A retry is the same call again (the same tool or model, the same arguments or conversation) after it had failed;
    asking a service again that answered is polling and does not count. An SDK's own retries are retries. Of this `kind`
    and this `tool` where given.
    """
    limit = int(RETRIES if spec.limit is None else spec.limit)
    window = WINDOW_MS if spec.window_ms is None else spec.window_ms
    worst = 0
    for tries in _chains(spec, run):
        times = [t for t, _ in tries]
        worst = max(worst, len(tries))
        for start in range(len(tries) - limit):
            took = times[start + limit] - times[start]
            if took > window:
                continue
            if len(run.exchanges) > 1 and not any(x.t_ms or x.duration_ms for x in run.exchanges):
                return inconclusive(f"{tries[0][1]} was tried {len(tries)} times, and the tape does not say when")
            return failed(
                f"{tries[start][1]} was tried {limit + 1} times within {took:,.0f} ms, more than {limit} times"
            )
    if not run.exchanges:
        return inconclusive("nothing crossed the boundary, so nobody knows what was tried")
    most = f"the most tried call was tried {worst} times" if worst > 1 else "nothing that failed was tried again"
    return passed(f"{most}; up to {limit} times within {window:,} ms are allowed")


def _chains(spec: Invariant, run: RunView) -> Iterator[list[tuple[float, str]]]:
    """Calls that were made again after they had failed: when each try was made, and where."""
    open_: dict[bytes, list[tuple[float, str]]] = {}
    for same, t_ms, site, broke in _tries(spec, run):
        chain = open_.setdefault(same, [])
        chain.append((t_ms, site))
        if not broke:
            yield open_.pop(same)
    yield from open_.values()


def _tries(spec: Invariant, run: RunView) -> Iterator[tuple[bytes, float, str, bool]]:
    """Each call: what makes it the same as another, when, where, and whether it failed."""
    kinds = (spec.kind,) if spec.kind else ("tool", "mcp") if spec.tool else COUNTED
    met: list[Exchange | ToolCall] = [
        x for x in run.exchanges if x.kind in kinds and (not spec.tool or is_call(x, spec.tool))
    ]
    inside = [c for c in tool_calls(run).made if c.exchange is None and c.kind in kinds]
    met += [c for c in inside if not spec.tool or c.means(spec.tool)]
    for call in sorted(met, key=lambda each: each.t_ms):
        if isinstance(call, Exchange):
            asked = f"{call.kind}/{call.name} {call.method} {call.url}\n"
            same = asked.encode("utf-8", "surrogatepass") + _content(call)
            yield same, call.t_ms, str(call.site), call_failed(call)
        else:
            given = orjson.dumps([call.tool, *call.arguments], option=orjson.OPT_SORT_KEYS)
            yield given, call.t_ms, call.site, bool(call.failed)


def _content(call: Exchange) -> bytes:
    """The body, without what differs in each try: the id of a JSON-RPC message."""
    if call.kind != "mcp":
        return call.body
    try:
        document = orjson.loads(call.body)
    except orjson.JSONDecodeError:
        return call.body
    if isinstance(document, dict):
        document.pop("id", None)
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _some(exchanges: Sequence[Exchange]) -> str:
    more = f" and {len(exchanges) - 1} more" if len(exchanges) > 1 else ""
    return f"{plain(str(exchanges[0].site), 60)}{more}"
