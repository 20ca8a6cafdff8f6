"""Recorded requests, edited: what means something is never taken for the recorded one, what means nothing always is."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flakestorm.core.site import Site
from flakestorm.tape import redact
from flakestorm.tape.fingerprint import Request
from flakestorm.tape.match import Matcher
from flakestorm.tape.model import Exchange
from replay_support import RECORDED_S, REPLAYED_S, SPANS, benign_edits, exchange, reply, semantic_edits
from wire_support import DATA, Recorded, cassettes

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

PER_REQUEST = 80


def taped(recorded: Recorded, body: bytes | None = None) -> Exchange:
    call = recorded.call
    headers = tuple(
        (name, value.decode() if isinstance(value, bytes) else value)
        for name, value in call.headers
        if name.lower() not in ("authorization", "x-api-key", "content-length")
    )
    return exchange(
        0,
        call.body if body is None else body,
        reply(recorded.body),
        site=Site("llm", recorded.wire.model_of(call) or "unknown", 1),
        url=redact.url(call.url),
        method=call.method,
        headers=(*headers, ("authorization", "[secret:0a1b2c3d]")),
    )


def outcome(one: Exchange, other: Request) -> str:
    return Matcher([one], spans=SPANS).match(other, "1").outcome


def bodies() -> list[tuple[Recorded, Any]]:
    found = [(recorded, json.loads(recorded.call.body)) for recorded in cassettes() if recorded.call.body]
    assert len(found) > 300
    return found


def test_no_edit_that_means_something_is_taken_for_the_recorded_request() -> None:
    tried: Counter[str] = Counter()
    taken: list[str] = []
    for recorded, body in bodies():
        one = taped(recorded)
        for what, edited in list(semantic_edits(body))[:PER_REQUEST]:
            if edited == body and type(edited) is type(body):
                continue
            other = Request.of(replace(one, body=json.dumps(edited).encode()))
            tried[re.sub(r" at .*| in .*", "", what)] += 1
            if outcome(one, other) not in ("diverged", "extra"):
                taken.append(f"{recorded.id}: {what}")
    assert not taken, f"{len(taken)} of {tried.total()}: {taken[:10]}"
    assert tried.total() > 5000, tried


def test_method_path_key_model_and_behaviour_headers_mean_something() -> None:
    for recorded, _ in bodies():
        one = Request.of(taped(recorded))
        others = [
            one._replace(url=one.url.replace("/v1", "/v2", 1) if "/v1" in one.url else one.url.partition("?")[0] + "x"),
            one._replace(url=re.sub(r"://[^/]+", "://elsewhere.test", one.url)),
            one._replace(method="PUT"),
            one._replace(name=f"{one.name}-mini"),
            one._replace(headers=(*one.headers[:-1], ("authorization", "[secret:ffffffff]"))),
            one._replace(headers=one.headers[:-1]),
            one._replace(headers=(*one.headers, ("anthropic-version", "1999-01-01"))),
            one._replace(headers=(*one.headers, ("anthropic-beta", "tools-2024-04-04"))),
        ]
        for other in others:
            assert outcome(taped(recorded), other) == "diverged", (recorded.id, other[:5])


def test_edits_that_mean_nothing_are_accepted() -> None:
    tried, refused = 0, []
    for recorded, body in bodies():
        one = taped(recorded)
        newer = (
            *one.headers,
            ("x-stainless-package-version", "9.9"),
            ("Idempotency-Key", "abc"),
            ("X-Request-Id", "q"),
        )
        edits = [*benign_edits(body), ("newer sdk", one.body)]
        for what, edited in edits:
            other = Request.of(replace(one, body=edited))
            if what == "newer sdk":
                other = other._replace(
                    headers=tuple((k, "z/9") if k.lower() == "user-agent" else (k, v) for k, v in newer)
                )
            tried += 1
            if outcome(one, other) in ("diverged", "extra"):
                refused.append(f"{recorded.id}: {what}")
    assert len(refused) <= 0.01 * tried, f"{len(refused)} of {tried}: {refused[:10]}"
    assert tried > 1500


def test_what_differs_from_run_to_run_is_renamed() -> None:
    """Fresh ids and the time of day, planted in the text of every recorded request."""
    tried, refused = 0, []
    for n, (recorded, body) in enumerate(bodies()):
        for kind in ("uuid", "hex", "now", "epoch", "tmp", "today", "machine"):
            old, new = (json.dumps(_planted(body, _volatile(kind, n, side))).encode() for side in (0, 1))
            if old == new:
                continue
            one = taped(recorded, old)
            tried += 1
            if outcome(one, Request.of(replace(one, body=new))) != "renamed":
                refused.append(f"{recorded.id}: {kind}")
    assert len(refused) <= 0.01 * tried, f"{len(refused)} of {tried}: {refused[:10]}"
    assert tried > 1500


def _volatile(kind: str, n: int, side: int) -> str:
    at_s = (RECORDED_S, REPLAYED_S)[side] + n % 50
    moment = datetime.fromtimestamp(at_s, UTC)
    made = uuid.UUID(int=(n + 1) * 7919 + side * 104729, version=4)
    return {
        "uuid": f"request {made}",
        "hex": f"run {made.hex}",
        "now": f"It is {moment.isoformat()}.",
        "epoch": f"sent at {int(at_s)}",
        "tmp": f"see /tmp/tmp{made.hex[:8]}/notes.txt",
        "today": f"Today is {moment.date()}.",
        "machine": f"logged {(moment - timedelta(days=400 - side)).replace(second=37, microsecond=120000).isoformat()}",
    }[kind]


def _planted(body: Any, text: str) -> Any:
    """The body with a text in its last turn, or in a member of its own."""
    for name in ("messages", "input", "contents"):
        turns = body.get(name)
        if isinstance(turns, list) and turns and isinstance(turns[-1], dict):
            return {**body, name: [*turns[:-1], {**turns[-1], "note": text}]}
    return {**body, "note": text}
