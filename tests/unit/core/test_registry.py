import importlib.metadata
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

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
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: points if group == "flakestorm.colours" else []
    )
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

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    known = make()
    assert known.get("green")
    assert scans == []
    assert known.names() == known.names() == ("green",)
    assert scans == ["flakestorm.colours"]


def test_what_stands_behind_a_built_in_name_is_imported_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: Registry[object] = Registry("colour", homes={"red": "warm_colours", "blue": "cold_colours"})
    monkeypatch.setitem(sys.modules, "test_registry_known", known)  # type: ignore[arg-type]
    (tmp_path / "warm_colours.py").write_text(
        "import test_registry_known as known\n@known.add('red')\ndef red(): pass\n"
    )
    (tmp_path / "cold_colours.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert (list(known), known.names(), "red" in known) == (["red", "blue"], ("red", "blue"), True)
    assert "warm_colours" not in sys.modules
    with pytest.raises(Misuse, match="twice"):
        known.add("red")(lambda: None)
    assert known.get("red") is sys.modules.pop("warm_colours").red
    with pytest.raises(Misuse, match="unknown colour 'blue'"):
        known.get("blue")
    del sys.modules["cold_colours"]


def test_nearest() -> None:
    assert nearest("tool_fault", ["tool_faults", "llm_faults"]) == "tool_faults"
    assert nearest("qqqq", ["tool_faults"]) is None


def test_what_is_only_added_to_a_known_word_says_more_than_a_like_spelling() -> None:
    assert nearest("malformed_response", ["malformed", "malicious_response"]) == "malformed"
    assert nearest("latency_s", ["latency", "latency_ms"]) == "latency_ms"
    assert nearest("rate", ["date", "rate_limit"]) == "rate_limit"
