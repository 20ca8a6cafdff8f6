"""Where standing gateways say that they stand, and where commands look for them.

Looking must cost nothing where there is none, so what a gateway is made of is not imported here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from flakestorm.boundary.providers import PROVIDERS
from flakestorm.core.regex import later

__all__ = ["PLACE", "announce", "places", "withdraw"]

PLACE = later(r"http://127\.0\.0\.1:\d+/r/(?P<token>[A-Za-z0-9_-]+)")
"""How the URLs of a standing gateway begin."""
_FILE = "gateway"


def places(environ: Mapping[str, str], stores: Iterable[Path]) -> Iterator[str]:
    """Where a standing gateway may be found: the URLs that the environment and the stores name, each once.

    Args:
        environ: the caller's; a shell that has the gateway's variables, or FLAKESTORM_GATEWAY.
        stores: folders in which a gateway may have been announced.
    """
    names = ("FLAKESTORM_GATEWAY", *(name for provider in PROVIDERS for name in provider.variables))
    texts = [environ.get(name, "") for name in names]
    for store in stores:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            texts.append((store / _FILE).read_text(encoding="utf-8"))
    found = (match for text in texts if text and (match := PLACE.match(text)))
    yield from dict.fromkeys(match[0] for match in found)


def announce(store: Path, url: str) -> None:
    """Write down in a store that the gateway at this URL stands; the URL is as good as a key, so nobody else may read.

    Raises:
        OSError: it cannot be written.
    """
    store.mkdir(parents=True, exist_ok=True)
    file = store / _FILE
    file.unlink(missing_ok=True)
    with open(file, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
        out.write(f"{url}\n")


def withdraw(store: Path, url: str) -> None:
    """Take the announcement back, unless another gateway has been announced since."""
    file = store / _FILE
    with contextlib.suppress(OSError):
        if file.read_text(encoding="utf-8").strip() == url:
            file.unlink()
