"""Python objects named in a config: `module:attribute.path`, from the config's folder."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from flakestorm.errors import AgentUnreachable, ConfigError

__all__ = ["LOADED", "importing_from", "last_frames", "load_object"]

LOADED: set[str] = set()
"""The modules that were imported here so far. What they have done to this process nobody knows."""


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """While entered, modules are looked for in this folder and the current one first.

    It stays entered for as long as an agent is used, because functions import too. Leaving it forgets the folder's own
    modules that were imported meanwhile, so a later agent of another folder does not get them by mistake.
    """
    added = list(dict.fromkeys((str(folder), str(Path.cwd()))))
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


def load_object(name: str, *, folder: Path, key: str) -> Any:
    """Import `module:attribute.path`. Call it within `importing_from(folder)`.

    Args:
        name: what to import.
        folder: the config's folder, for the check that the module found there is the one that was loaded.
        key: the config key that names it, for messages.

    Raises:
        ConfigError: the name is not of that form.
        AgentUnreachable: the module cannot be imported or has no such attribute.
    """
    module_name, colon, path = name.partition(":")
    parts = path.split(".")
    if not (colon and all(part.isidentifier() for part in (*module_name.split("."), *parts))):
        raise ConfigError(f"{name!r} is not of the form module:function, for example agent:answer", key=key)
    LOADED.add(module_name)  # also one that fails may have come half-way
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise AgentUnreachable(
            f"{key}: the module {module_name!r} cannot be imported from {folder}: {last_frames(error)}"
        ) from error
    _check_origin(module_name.partition(".")[0], folder, key)
    for depth, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            where = ".".join((module_name, *parts[:depth]))
            raise AgentUnreachable(f"{key}: there is no {part!r} in {where} ({_file(found)})") from error
    return found


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
    wanted = PathFinder.find_spec(top, [str(folder)])
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
