"""Files of ours that are no modules: data, templates, the viewer's pages.

They lie beside the modules of their room and are read there. `importlib.resources`, which takes some milliseconds to
import, is asked only where there are no folders, because the package is imported out of an archive.
"""

from __future__ import annotations

from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["beside"]

_HOUSE = Path(__file__).parent.parent


def beside(room: str, *names: str) -> Traversable:
    """A file or folder of a room: to be read, or to be gone through.

    Args:
        room: the room, e.g. `wire`.
        names: the way from there, e.g. `prices.yaml`.
    """
    place = _HOUSE.joinpath(room, *names)
    if place.exists():
        return place
    from importlib.resources import files  # as above

    return files("flakestorm").joinpath(room, *names)
