"""Patching on import: nothing is imported for the agent's sake, and what it never imports costs nothing."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # the typing module is not imported for the agent's sake
if TYPE_CHECKING:
    from typing import Any

__all__ = ["PATCHES", "install"]

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
    """Patch what is imported already, and the rest as it is imported.

    Args:
        url: the run's root on the gateway.
    """
    waiting = {}
    for name, patch in PATCHES.items():
        if name in sys.modules:
            _patch(name, patch, url)
        else:
            waiting[name] = patch
    sys.meta_path.insert(0, _Finder(waiting, url))


def _patch(name: str, patch: str, url: str) -> None:
    try:
        from importlib import import_module

        from .gate import Gate

        import_module(f".{patch}", __package__).apply(sys.modules[name], Gate(url))
    except Exception as error:
        from .notes import note

        note(f"{name} is left as it is, its calls with hard-coded URLs are not seen: {error!r}")


class _Finder:
    """Lets the other finders find a waited-for library, and wraps its loader."""

    def __init__(self, waiting: dict[str, str], url: str) -> None:
        self.waiting, self.url = waiting, url

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self.waiting:
            return None
        patch = self.waiting.pop(fullname)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, patch, self.url)
                return spec
        self.waiting[fullname] = patch  # not there now; a later import may find it
        return None


class _Loader:
    """The library's own loader, and the patch after it."""

    def __init__(self, loader: Any, patch: str, url: str) -> None:
        self._loader, self._patch, self._url = loader, patch, url

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        create = getattr(self._loader, "create_module", None)
        return create(spec) if create is not None else None

    def exec_module(self, module: Any) -> None:
        # The module must look as if this had never been here, while it runs and afterwards.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _patch(module.__name__, self._patch, self._url)
