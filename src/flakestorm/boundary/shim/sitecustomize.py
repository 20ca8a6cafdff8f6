"""Found by every Python that a launched agent starts, because this folder stands first on its PYTHONPATH.

Standard library only, Python 3.8 or newer: it runs in the agent's environment, not in flakestorm's. It hands over to
the `sitecustomize` that would have been found without it, and does nothing else unless FLAKESTORM_GATEWAY is set.
"""

from __future__ import annotations

import os
import sys


def _hand_over() -> None:
    """Run the next `sitecustomize` on the path, if there is one, in this one's place."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    # os.path and not pathlib, which would be imported into every Python that starts.
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("FLAKESTORM_GATEWAY"):
    try:
        from importlib import import_module

        import_module("flakestorm_shim").start(os.environ["FLAKESTORM_GATEWAY"])
    except Exception as error:
        if sys.stderr is not None:
            sys.stderr.write(f"flakestorm: the start-up shim failed, hard-coded URLs are not seen: {error!r}\n")

_hand_over()
