"""Tool results in requests that real clients sent: found, named, and rewritten with every other byte as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.conversation import rewrite, tool_results
from flakestorm.wire.results import Told
from wire_support import DATA, recorded_request

WIRES = {
    "openai.chat": "openai_chat",
    "anthropic.messages": "anthropic",
    "openai.responses": "openai_responses",
    "google.generate": "gemini",
}
FOUND = {"openai_chat": 30, "anthropic": 35, "openai_responses": 31, "gemini": 49}
"""How many results the requests of the index hold, as `_marked` counts them; so none is lost unnoticed."""


@cache
def requests() -> tuple[tuple[str, str, bytes], ...]:
    """(id, wire, body) of every indexed request that holds a result."""
    index = DATA / "wire" / "INDEX.jsonl"
    if not index.exists():
        return ()
    found = []
    for row in map(json.loads, index.read_text().splitlines()):
        if row["api"] in WIRES:
            body = recorded_request(row)
            if body.startswith(b"{") and any(_marked(json.loads(body))):
                found.append((f"{Path(row['file']).stem}#{row['i']}", WIRES[row["api"]], body))
    return tuple(found)


def _marked(value: Any) -> Iterator[dict[str, Any]]:
    """Every object that some protocol spells a result as, found without knowing where results stand."""
    if isinstance(value, dict):
        if value.get("role") == "tool" or value.get("type") in ("tool_result", "function_call_output"):
            yield value
        for key, inner in value.items():
            if key in ("functionResponse", "function_response"):
                yield inner
            else:
                yield from _marked(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _marked(inner)


def ids(request: tuple[str, str, bytes]) -> str:
    return request[0]


pytestmark = pytest.mark.skipif(not requests(), reason=f"there are no recordings in {DATA}")


@pytest.mark.parametrize("request_", requests(), ids=ids)
def test_every_result_is_found_and_named(request_: tuple[str, str, bytes]) -> None:
    _, wire, body = request_
    found = tool_results(wire, body)
    assert [result.entry for result in found] == list(_marked(json.loads(body)))
    assert all(result.name != "unknown" for result in found)
    assert len({result.key for result in found}) == len(found)


def test_no_recording_is_lost() -> None:
    counts = dict.fromkeys(FOUND, 0)
    for _, wire, body in requests():
        counts[wire] += len(tool_results(wire, body))
    assert counts == FOUND


@pytest.mark.parametrize("request_", requests(), ids=ids)
@pytest.mark.parametrize("style", ["compact", "spaced", "indented"])
def test_only_the_result_s_own_bytes_change(request_: tuple[str, str, bytes], style: str) -> None:
    _, wire, body = request_
    options = {"compact": {"separators": (",", ":"), "ensure_ascii": False}, "spaced": {}, "indented": {"indent": 2}}
    body = json.dumps(json.loads(body), **options[style]).encode()  # type: ignore[arg-type]
    for result in tool_results(wire, body):
        changed = rewrite(wire, body, [(result, Told("FOUL PLAY", failed=True))])
        left = next((at for at, (a, b) in enumerate(zip(body, changed, strict=False)) if a != b), len(body))
        right = next((at for at, (a, b) in enumerate(zip(body[::-1], changed[::-1], strict=False)) if a != b), 0)
        assert b"FOUL PLAY" in changed[left - 20 : len(changed) - right + 20]
        before, after = json.loads(body), json.loads(changed)
        spot_before, spot_after = _at(before, result.path), _at(after, result.path)
        other = {"content", "is_error", "output", "response", "parts"}
        assert {k: v for k, v in spot_after.items() if k not in other} == {
            k: v for k, v in spot_before.items() if k not in other
        }
        spot_before.clear()
        spot_after.clear()
        assert before == after
        # and outside of the object of the result, not a byte
        size = len(json.dumps(result.entry, **options[style]).encode()) * 2 + 200  # type: ignore[arg-type]
        assert len(body) - left - right <= size
        (again,) = [r for r in tool_results(wire, changed) if r.path == result.path]
        assert again.told.text == "FOUL PLAY"
        assert again.told.failed == (wire in ("anthropic", "gemini"))


def _at(document: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


@given(data=st.data())
def test_any_text_survives_and_all_results_change_at_once(data: st.DataObject) -> None:
    _, wire, body = data.draw(st.sampled_from(requests()))
    found = tool_results(wire, body)
    telling = [Told(data.draw(st.text(max_size=40)), failed=data.draw(st.booleans())) for _ in found]
    changed = rewrite(wire, body, list(zip(found, telling, strict=True)))
    again = tool_results(wire, changed)
    assert [result.path for result in again] == [result.path for result in found]
    for result, told in zip(again, telling, strict=True):
        as_object = wire == "gemini" and told.text.startswith("{")  # which may be spelled anew
        assert as_object or result.told.text == told.text


@pytest.mark.parametrize("request_", requests(), ids=ids)
def test_a_result_is_the_same_one_when_the_conversation_goes_on(request_: tuple[str, str, bytes]) -> None:
    """Requests of one recording that continue another hold its results first, and say that they are the same."""
    name, wire, body = request_
    stem, _, _ = name.rpartition("#")
    field = {"openai_responses": "input", "gemini": "contents"}.get(wire, "messages")
    mine = json.loads(body)[field]
    for other, _, later in requests():
        theirs = json.loads(later).get(field, [])
        if other.rpartition("#")[0] == stem and theirs[: len(mine)] == mine:
            keys = [result.key for result in tool_results(wire, later)]
            assert keys[: len(tool_results(wire, body))] == [result.key for result in tool_results(wire, body)]
