"""What all faults that change what a model said have in common."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

from flakestorm.core.call import Call, Pull, Reply, Tap
from flakestorm.core.pipeline import Flow
from flakestorm.faults.base import Scene, inward
from flakestorm.wire.base import Edit
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.streaming import Frames, counted, first

__all__ = ["UNKNOWN", "editing", "reached", "unchangeable"]

_LEFT = "the agent left the stream before that"
UNKNOWN = "no wire understands this protocol"
"""Why a model fault does nothing to a call that speaks none of the protocols known here."""


def editing(edit: Edit, scene: Scene, *, otherwise: str) -> Callable[[Call], Flow]:
    """The stage that lets the model answer and applies an edit to what it says.

    The edit is spelled by the call's wire, so it is valid bytes for that provider's own SDK, whole or streamed. The
    reply of a protocol that no wire understands passes as it is, and so does an error that the provider really
    answered with.

    Args:
        edit: the change. Its `on_change` fires the fault.
        scene: where it is written down that nothing changed.
        otherwise: why nothing changed in an answer that could have been changed.
    """

    def stage(call: Call) -> Flow:
        reply = yield from inward(call)
        wire = wire_of(call.wire)
        if wire is None:
            scene.idle(UNKNOWN)
            return reply
        watch = _Watch(edit.on_change, scene.idle, otherwise)
        edited = wire.edit(reply, replace(edit, on_change=watch.changed))
        if edited is reply:
            scene.idle(unchangeable(reply, call))
            return reply
        return edited.pipe(watch)

    return stage


def unchangeable(reply: Reply, call: Call) -> str:
    """Why nothing of a model's reply can be changed."""
    if reply.status >= 400:
        return f"the provider answered {reply.status} by itself"
    return f"such an answer cannot be changed, or not to this ({call.wire})"


class _Watch(Tap):
    """Tells at the end of a body that nothing in it was changed, and why.

    Some SDKs leave a stream at its end marker, before it is over; others leave in the middle.
    """

    __slots__ = ("_changed", "_fire", "_idle", "_why")

    def __init__(self, fire: Callable[[], None], idle: Callable[[str], None], why: str) -> None:
        self._fire, self._idle, self._why, self._changed = fire, idle, why, False

    def changed(self) -> None:
        """The reply has been altered."""
        self._changed = True
        self._fire()

    def end(self, error: BaseException | None) -> None:
        if not self._changed and (error is None or isinstance(error, GeneratorExit)):
            self._idle(self._why if error is None else f"{self._why}, as far as the agent read it")


def reached(events: int, frames: Frames, scene: Scene) -> Generator[Pull | bytes, bytes | None, bool]:
    """Part of a stage: let out this many events; tells whether more would come, so that a fault can act now.

    Where it cannot, because the stream ends or the agent leaves it before, the reason is written down in the scene.
    """
    try:
        more = yield from first(events, frames)
    except GeneratorExit:
        scene.idle(_LEFT)
        raise
    if not more:
        scene.idle(f"the stream had no more than {counted(events)}")
    return more
