"""Noticing an import without causing one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from flakestorm.boundary.seams.imports import ImportWatch


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a package that can be imported; forgotten afterwards."""
    package = tmp_path / "watched_library"
    package.mkdir()
    (package / "__init__.py").write_text("value = 1\n")
    (package / "part.py").write_text("value = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package.name
    for name in [name for name in sys.modules if name.split(".")[0] == package.name]:
        del sys.modules[name]


@pytest.fixture
def watch() -> Iterator[tuple[ImportWatch, list[ModuleType]]]:
    imported: list[ModuleType] = []
    watch = ImportWatch(imported.append)
    yield watch, imported
    watch.stop()


def test_the_library_is_handed_over_after_it_was_executed(
    library: str, watch: tuple[ImportWatch, list[ModuleType]]
) -> None:
    watching, imported = watch
    watching.start([library])
    module = importlib.import_module(f"{library}.part")
    package = sys.modules[library]
    assert imported == [package]
    assert (package.value, module.value) == (1, 2)
    assert "exec_module" not in vars(package.__loader__)


def test_a_second_import_is_not_told_again(library: str, watch: tuple[ImportWatch, list[ModuleType]]) -> None:
    watching, imported = watch
    watching.start([library])
    for _ in range(2):
        importlib.import_module(library)
        del sys.modules[library]
    assert len(imported) == 1


def test_other_imports_are_left_to_python(watch: tuple[ImportWatch, list[ModuleType]]) -> None:
    watching, _ = watch
    watching.start(["watched_library"])
    assert watching.find_spec("json", None) is None


def test_a_library_that_is_not_there_is_still_not_there(watch: tuple[ImportWatch, list[ModuleType]]) -> None:
    watching, imported = watch
    watching.start(["no_such_library_anywhere"])
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_library_anywhere")
    assert imported == []


def test_a_library_that_fails_to_import_is_awaited_on(
    library: str, watch: tuple[ImportWatch, list[ModuleType]], tmp_path: Path
) -> None:
    watching, imported = watch
    (tmp_path / library / "__init__.py").write_text("raise RuntimeError('not today')\n")
    watching.start([library])
    with pytest.raises(RuntimeError, match="not today"):
        importlib.import_module(library)
    assert imported == []
    (tmp_path / library / "__init__.py").write_text("value = 'another day'\n")
    importlib.invalidate_caches()
    importlib.import_module(library)
    assert [module.value for module in imported] == ["another day"]


def test_stopping_takes_the_watch_out(library: str, watch: tuple[ImportWatch, list[ModuleType]]) -> None:
    watching, imported = watch
    watching.start([library])
    watching.start([library])
    assert sys.meta_path.count(watching) == 1
    watching.stop()
    importlib.import_module(library)
    assert watching not in sys.meta_path
    assert imported == []
