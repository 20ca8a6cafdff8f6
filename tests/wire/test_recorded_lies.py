"""Lies about what real tools said: still JSON, of the same keys and types, and the truth is gone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from faults_support import scene
from flakestorm.config.model import ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.site import Site
from flakestorm.faults.base import Change, result_faults
from flakestorm.faults.lying import dropped_result, wrong_result
from flakestorm.wire.mcp.result import ABSENT, read_json
from flakestorm.wire.results import Told
from wire_support import DATA

FILES = ("tau_bench_gpt4o_airline.jsonl", "agentdojo_groundtruth_workspace_slack.jsonl")
KNOWN = {FILES[0]: 215, FILES[1]: 64}
"""How many different results each file holds, so that none is lost unnoticed."""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("content") or part.get("text") or "" for part in content or ())


@cache
def results(name: str) -> tuple[str, ...]:
    """What tools said in these runs, each text once."""
    path = DATA / "trajectories" / name
    if not path.exists():
        return ()
    found: dict[str, None] = {}
    for run in map(json.loads, path.read_text().splitlines()):
        for message in run.get("traj") or run.get("messages") or ():
            if message.get("role") == "tool" and (text := _text(message.get("content"))):
                found.setdefault(text)
    return tuple(found)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


def paths(value: Any, at: str = "") -> Iterator[str]:
    yield at
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from paths(inner, f"{at}/{step if isinstance(value, dict) else ''}")


def changed(mode: str, text: str, n: int) -> tuple[Change | None, list[str]]:
    idle: list[str] = []
    at = replace(scene([], Site("tool", "t", n)), choices=Choices(7, n), idle=idle.append)
    return result_faults.get(mode)(ToolFault(mode=mode), at, Told(text)), idle


@pytest.mark.parametrize("name", FILES)
def test_every_result_is_told_otherwise_or_it_is_said_why_not(name: str) -> None:
    if not results(name):
        pytest.skip("the recorded runs are not here")
    assert len(results(name)) == KNOWN[name]
    assert result_faults.get("wrong_value") is wrong_result
    assert result_faults.get("drop_fields") is dropped_result
    outcomes = Counter[str]()
    for n, text in enumerate(results(name)):
        document = read_json(text)
        for mode in ("wrong_value", "drop_fields"):
            change, idle = changed(mode, text, n)
            assert (change is None) == bool(idle)
            outcomes[f"{mode} {'idle' if change is None else 'fires'}"] += 1
            if change is None:
                continue
            assert change.told is not None
            assert change.told.text != text
            assert change == changed(mode, text, n)[0], "the same draw tells the same lie"
            if document is ABSENT:
                assert mode == "wrong_value"
                continue
            told = read_json(change.told.text)
            assert told is not ABSENT
            if mode == "wrong_value":
                assert shape(told) == shape(document)
                assert told != document
            else:
                assert set(paths(told)) < set(paths(document))
    assert outcomes["wrong_value fires"] > 0.7 * len(results(name))
    if name == FILES[0]:
        assert outcomes["drop_fields fires"] > 0.7 * len(results(name))
