from importlib.metadata import EntryPoint

import pytest

from flakestorm.core import registry as module
from flakestorm.core.registry import Registry, nearest
from flakestorm.errors import Misuse


def make() -> Registry[object]:
    known: Registry[object] = Registry("colour", "flakestorm.colours")
    known.add("green")("GREEN")
    return known


def test_known_names() -> None:
    known = make()
    assert known.get("green") == "GREEN"
    assert list(known) == ["green"]
    assert "green" in known


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    with pytest.raises(Misuse, match="unknown colour 'gren'; did you mean 'green'"):
        make().get("gren")


def test_a_foreign_name_gets_the_list() -> None:
    with pytest.raises(Misuse, match="known: green"):
        make().get("zzz")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(Misuse, match="twice"):
        make().add("green")("other")


def test_plug_ins_are_found_and_failing_ones_named(monkeypatch) -> None:
    points = [
        EntryPoint("path", "os.path:join", "flakestorm.colours"),
        EntryPoint("broken", "no_such_module_here:x", "flakestorm.colours"),
    ]
    monkeypatch.setattr(module, "entry_points", lambda group: points if group == "flakestorm.colours" else [])
    import os.path

    known = make()
    assert known.get("path") is os.path.join
    assert known.names() == ("green", "path", "broken")
    with pytest.raises(Misuse, match="from no_such_module_here:x cannot be loaded"):
        known.get("broken")


def test_distributions_are_scanned_once_and_not_for_built_in_names(monkeypatch) -> None:
    scans: list[str] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        scans.append(group)
        return []

    monkeypatch.setattr(module, "entry_points", entry_points)
    known = make()
    assert known.get("green")
    assert scans == []
    assert known.names() == known.names() == ("green",)
    assert scans == ["flakestorm.colours"]


def test_nearest() -> None:
    assert nearest("tool_fault", ["tool_faults", "llm_faults"]) == "tool_faults"
    assert nearest("qqqq", ["tool_faults"]) is None
