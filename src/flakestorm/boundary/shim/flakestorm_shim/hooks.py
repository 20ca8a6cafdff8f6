"""Patching on import: nothing is imported for the agent's sake, and what it never imports costs nothing."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["PATCHES", "install", "watch"]

PATCHES = {
    "http.client": "on_http_client",
    "urllib.request": "on_urllib_request",
    "urllib3": "on_urllib3",
    "httpx": "on_httpx",
    "httpx2": "on_httpx",
    "aiohttp": "on_aiohttp",
    "mcp.client.stdio": "on_mcp",
}
"""Library to the module of this package that patches it."""


def install(url: str) -> None:
    """Lead the calls of every known library to the gateway, as soon as it is imported.

    Args:
        url: the run's root on the gateway.
    """
    watch(
        {name: _leading(patch, url) for name, patch in PATCHES.items()}, "its calls with hard-coded URLs are not seen"
    )


def watch(patches: dict[str, Callable[[Any], None]], otherwise: str) -> None:
    """Patch what is imported already, and the rest as it is imported.

    Args:
        patches: library to what is called with it.
        otherwise: what it means if that fails, in words.
    """
    waiting = {}
    for name, patch in patches.items():
        if name in sys.modules:
            _patch(sys.modules[name], patch, otherwise)
        else:
            waiting[name] = patch
    sys.meta_path.insert(0, _Finder(waiting, otherwise))


def _leading(patch: str, url: str) -> Callable[[Any], None]:
    def apply(module: Any) -> None:
        from importlib import import_module

        from .gate import Gate

        import_module(f".{patch}", __package__).apply(module, Gate(url))

    return apply


def _patch(module: Any, patch: Callable[[Any], None], otherwise: str) -> None:
    try:
        patch(module)
    except Exception as error:
        from .notes import note

        note(f"{module.__name__} is left as it is, {otherwise}: {error!r}")


class _Finder:
    """Lets the other finders find a waited-for library, and wraps its loader."""

    def __init__(self, waiting: dict[str, Callable[[Any], None]], otherwise: str) -> None:
        self.waiting, self.otherwise = waiting, otherwise

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self.waiting:
            return None
        patch = self.waiting.pop(fullname)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, patch, self.otherwise)
                return spec
        self.waiting[fullname] = patch  # not there now; a later import may find it
        return None


class _Loader:
    """The library's own loader, and the patch after it."""

    def __init__(self, loader: Any, patch: Callable[[Any], None], otherwise: str) -> None:
        self._loader, self._patch, self._otherwise = loader, patch, otherwise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        create = getattr(self._loader, "create_module", None)
        return create(spec) if create is not None else None

    def exec_module(self, module: Any) -> None:
        # The module must look as if this had never been here, while it runs and afterwards.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _patch(module, self._patch, self._otherwise)
