"""Plug-ins of the group `flakestorm.faults`: the entry point names the mode, what it loads says the family."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.faults import plugins
from flakestorm.faults.plugins import FaultRegistry, Form, fault

CODE = """
from flakestorm.faults.plugins import fault

@fault("tool", result=lambda spec, choices, told: "told")
def both(spec, scene): ...

@fault("llm")
def babble(spec, scene): ...

def unmarked(spec, scene): ...
"""

POINTS = """
[flakestorm.faults]
both = brought_faults:both
babble = brought_faults:babble
unmarked = brought_faults:unmarked
missing = brought_faults:missing
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "brought_faults-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-faults\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "brought_faults.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    plugins._forms.cache_clear()
    yield
    sys.modules.pop("brought_faults", None)
    plugins._forms.cache_clear()


def registry(form: Form) -> FaultRegistry[object]:
    return FaultRegistry(f"{form} fault", form)


@pytest.mark.usefixtures("installed")
def test_each_family_finds_its_own() -> None:
    assert {"both"} <= set(registry("tool").names())
    assert "babble" not in registry("tool").names()
    assert {"babble"} <= set(registry("llm").names())
    assert registry("result").names() == ("both",)
    assert registry("result").get("both")(None, None, None) == "told"  # type: ignore[operator]
    assert registry("llm").get("babble").__name__ == "babble"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unmarked", "from brought_faults:unmarked cannot be loaded: it does not say whose fault it is"),
        ("missing", "from brought_faults:missing cannot be loaded: .*has no attribute 'missing'"),
        ("babbl", "unknown tool fault 'babbl'"),
    ],
)
def test_what_cannot_be_played_says_why(name: str, words: str) -> None:
    with pytest.raises(Misuse, match=words):
        registry("tool").get(name)


@pytest.mark.usefixtures("installed")
def test_built_in_names_come_first_and_need_no_search() -> None:
    known = registry("tool")
    known.add("both")(object())
    assert known.names()[0] == "both"
    assert known.get("both").__class__ is object


def test_only_tools_have_results() -> None:
    with pytest.raises(Misuse, match="only a fault of tools"):
        fault("llm", result=print)
