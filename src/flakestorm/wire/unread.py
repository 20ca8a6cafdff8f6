"""What is the same in every protocol whose answers are not changed.

They pass as they are, and faults that change what they say do not fire there.
"""

from __future__ import annotations

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Edit, Failure
from flakestorm.wire.frames import Framer

__all__ = ["Unread"]


class Unread:
    """The half of `base.Wire` that has nothing to do."""

    def failure_event(self, failure: Failure, call: Call, *, after: int) -> None:
        """Nothing: how their streams fail, if there are any, is not known here."""

    def blocked(self, call: Call, message: str = "") -> None:
        """Nothing: their filters, if there are any, are not known here."""

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Nothing: their streams, if there are any, pass as they are."""
        return None

    def edit(self, reply: Reply, edit: Edit) -> Reply:
        """The reply as it is."""
        return reply
