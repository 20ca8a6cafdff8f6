"""What the shim has to say, said once and on stderr: standard output belongs to the agent."""

from __future__ import annotations

import sys

__all__ = ["note"]

_said: set[str] = set()


def note(message: str) -> None:
    """Say it, unless it was said before in this process."""
    if message in _said:
        return
    _said.add(message)
    try:
        sys.stderr.write(f"flakestorm: {message}\n")
    except Exception:  # an agent may have closed its stderr, or have none
        return
