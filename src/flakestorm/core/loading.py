"""Python objects named in a config: `module:attribute.path`, from the config's folder."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from flakestorm.core.registry import nearest
from flakestorm.errors import AgentUnreachable, ConfigError

__all__ = ["LOADED", "demand_module", "importing_from", "last_frames", "load_object", "source_folder"]

LOADED: set[str] = set()
"""The modules that were imported here so far. What they have done to this process nobody knows."""


_LOOKED_AT = 1000
"""How many names are compared with one that is not there."""


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """While entered, modules are looked for in this folder and the current one first, then in the folder's own `src`.

    It stays entered for as long as an agent is used, because functions import too. Leaving it forgets the folder's own
    modules that were imported meanwhile, so a later agent of another folder does not get them by mistake.
    """
    added = list(dict.fromkeys((str(folder), str(Path.cwd()), *source_folder(folder))))
    before = set(sys.modules)
    sys.path[:0] = added
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for path in added:
            if path in sys.path:
                sys.path.remove(path)
        for name in [name for name, module in list(sys.modules.items()) if name not in before and _in(module, folder)]:
            del sys.modules[name]


def source_folder(folder: Path) -> tuple[str, ...]:
    """The `src` of a project in src layout, none of any other.

    It goes before what is installed: a checkout of another version must not get the working copy's code because that
    is installed in place.
    """
    src = folder / "src"
    project = any((folder / name).is_file() for name in ("pyproject.toml", "setup.py", "setup.cfg"))
    return (str(src),) if project and src.is_dir() and not (src / "__init__.py").exists() else ()


def load_object(name: str, *, folder: Path, key: str) -> Any:
    """Import `module:attribute.path`. Call it within `importing_from(folder)`.

    Args:
        name: what to import.
        folder: the config's folder, for the check that the module found there is the one that was loaded.
        key: the config key that names it, for messages.

    Raises:
        ConfigError: the name is not of that form, or there is nothing of that name: no such module, or nothing so
            called in it.
        AgentUnreachable: the module is there and cannot be imported: its own code fails.
    """
    module_name, parts = _parts(name, key)
    LOADED.add(module_name)  # also one that fails may have come half-way
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(_no_module(name, error.name, folder), key=key) from error
        raise AgentUnreachable(
            f"{key}: the module {module_name!r} cannot be imported from {folder}: {last_frames(error)}"
        ) from error
    _check_origin(module_name.partition(".")[0], folder, key)
    for depth, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            where = ".".join((module_name, *parts[:depth]))
            own = getattr(found, "__dict__", {})
            hint = _hint(part, [each for each in dir(found) if not isinstance(own.get(each), ModuleType)])
            said = f"{name}: there is no {part!r} in {where} ({_file(found)}){hint}"
            raise ConfigError(said, key=key) from error
    return found


def demand_module(name: str, *, folder: Path, key: str) -> None:
    """Make sure that the module of `module:attribute.path` is there, as far as that can be told without running code.

    Only the first part of a dotted module is looked for, because the others take importing it. Call it within
    `importing_from(folder)`.

    Args:
        name, folder, key: as for `load_object`.

    Raises:
        ConfigError: the name is not of that form, or there is no such module.
    """
    top = _parts(name, key)[0].partition(".")[0]
    try:
        there = importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):  # one that is loaded and does not say where it came from
        there = True
    if not there:
        raise ConfigError(_no_module(name, top, folder), key=key)


def _parts(name: str, key: str) -> tuple[str, list[str]]:
    """The module, and the attributes that lead on from it."""
    module_name, colon, path = name.partition(":")
    parts = path.split(".")
    if not (colon and all(part.isidentifier() for part in (*module_name.split("."), *parts))):
        raise ConfigError(f"{name!r} is not of the form module:function, for example agent:answer", key=key)
    return module_name, parts


def _no_module(name: str, module: str, folder: Path) -> str:
    """That there is no such module, and which is most like it in the place where it was looked for."""
    *package, _ = module.split(".")
    src = source_folder(folder)
    names: set[str] = set()
    for beside in (place.joinpath(*package) for place in (folder, *map(Path, src))):
        names |= {path.stem for path in islice(beside.glob("*.py"), _LOOKED_AT)}
        names |= {path.parent.name for path in islice(beside.glob("*/__init__.py"), _LOOKED_AT)}
    whole = {".".join((*package, each)) for each in names if each.isidentifier()}
    where = f"it is neither in {folder}{' or its src' if src else ''} nor in the current folder, nor is it installed"
    return f"{name}: the module {module!r} cannot be imported: {where}{_hint(module, whole)}"


def _hint(word: str, known: Iterable[str]) -> str:
    close = nearest(word, [each for each in known if not each.startswith("__")])
    return f"; did you mean {close!r}?" if close else ""


def last_frames(error: BaseException, count: int = 3) -> str:
    """An exception in words, with the last frames of the agent's own code."""
    ours = str(Path(__file__).parents[1])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, "<frozen importlib")) and "asyncio" not in Path(frame.filename).parts
    ]
    said = "".join(traceback.format_exception_only(error)).strip()
    where = "".join(f"\n    {f.filename}:{f.lineno} in {f.name}: {f.line or ''}" for f in frames[-count:])
    return f"{said}{where}"


def _check_origin(top: str, folder: Path, key: str) -> None:
    """Two agents of one name cannot live in one process; silently taking the other one would judge the wrong code."""
    wanted = PathFinder.find_spec(top, [str(folder), *source_folder(folder)])
    loaded = sys.modules.get(top)
    if wanted is None or wanted.origin is None or loaded is None:
        return
    origin = getattr(loaded, "__file__", None)
    if origin and Path(origin).resolve() != Path(wanted.origin).resolve():
        raise AgentUnreachable(
            f"{key}: the module {top!r} of {folder} cannot be loaded, because {origin} is already loaded under that "
            "name; rename one of them, or attach the agent as type command or http"
        )


def _in(module: ModuleType | None, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    if not file:
        return False
    path = Path(file)
    return path.is_relative_to(folder) and not {"site-packages", "dist-packages"} & set(path.parts)


def _file(value: Any) -> str:
    return str(getattr(value, "__file__", None) or type(value).__name__)
