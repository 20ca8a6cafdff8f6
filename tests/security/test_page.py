"""The page of attacks names tests that exist, and every test here is on it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "security.md"
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _defined(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def test_each_test_that_is_named_exists() -> None:
    named = _NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 50
    assert [f"{file}::{name}" for file, name in named if name not in _defined(ROOT / file)] == []


def test_every_row_names_one() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    attacks = [line for line in rows if not line.startswith("| attack")]
    assert [line for line in attacks if not _NAMED.search(line)] == []


def test_every_attack_that_is_tested_here_is_told() -> None:
    named = {name for _, name in _NAMED.findall(PAGE.read_text(encoding="utf-8"))}
    here = Path(__file__).parent
    told = {f"test_{room}.py" for room in ("gateway", "store", "files", "children", "expressions", "tapes")}
    tests = {name for file in told for name in _defined(here / file) if name.startswith("test_")}
    assert sorted(tests - named - COUNTERPARTS) == []


COUNTERPARTS = {  # what must still work beside an attack that is refused
    "test_names_of_this_machine_and_its_network_are_let_in",
    "test_one_that_matches_all_the_same_is_a_fail",
    "test_a_store_that_is_no_database_is_told_and_left_alone",
}
