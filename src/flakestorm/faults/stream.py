"""Faults of a model's stream on its way: it breaks off, or it is slow.

They leave the words alone and act on a streamed answer only; on a whole reply they do not fire. An event is what the
provider streams in: an event, a line (Ollama), an element (Gemini's array), a message (Amazon's event stream).
"""

from __future__ import annotations

from flakestorm.config.model import LlmFault
from flakestorm.core.call import Call, Chunks, Sleep, header
from flakestorm.core.pipeline import Flow, Interceptor
from flakestorm.errors import CallFailed
from flakestorm.faults.base import Scene, inward, llm_faults
from flakestorm.faults.replies import UNKNOWN, reached, unchangeable
from flakestorm.wire.encoding import decoded
from flakestorm.wire.frames import Framer, Framing, Pieces
from flakestorm.wire.protocols import wire_of
from flakestorm.wire.streaming import WHOLE, Frames, by_frame, counted

__all__ = ["slow_stream", "stream_cut"]

_AFTER_EVENTS = 3
_FIRST_TOKEN_MS = 2_000
_PER_CHUNK_MS = 100


@llm_faults.add("stream_cut")
def stream_cut(spec: LlmFault, scene: Scene) -> Interceptor:
    """`after_events` (3) events reach the agent, then the connection breaks.

    It breaks when something more would have come; a stream of no more events than that ends as it would.
    """
    events = _AFTER_EVENTS if spec.after_events is None else spec.after_events

    def cut(frames: Frames) -> Chunks:
        if (yield from reached(events, frames, scene)):
            scene.fired(f"cut after {counted(events)}")
            raise CallFailed("reset", f"the stream was cut after {counted(events)}", injected=True)

    def stage(call: Call) -> Flow:
        reply = yield from inward(call)
        wire, plain = wire_of(call.wire), decoded(reply)
        if wire is None or plain is None or plain.status >= 400:
            scene.idle(UNKNOWN if wire is None else unchangeable(reply, call))
            return reply
        return by_frame(plain, wire.framing, cut, document=lambda: scene.idle(WHOLE))

    return stage


@llm_faults.add("slow_stream")
def slow_stream(spec: LlmFault, scene: Scene) -> Interceptor:
    """The first event comes `first_token_ms` (2000) later, each further one `per_chunk_ms` (100) after the one before.

    Not a byte changes. Of a stream that is compressed in a way that hides its events, every chunk counts as one.
    """
    first_ms = _FIRST_TOKEN_MS if spec.first_token_ms is None else spec.first_token_ms
    each_ms = _PER_CHUNK_MS if spec.per_chunk_ms is None else spec.per_chunk_ms

    def slow(frames: Frames) -> Chunks:
        delay_ms = first_ms
        while (frame := (yield from frames.next())) is not None:
            if delay_ms and frame.data is not None:
                scene.fired(f"first event {first_ms} ms late, {each_ms} ms between events")
                yield Sleep(delay_ms / 1000)
            yield frame.raw
            delay_ms = each_ms if frame.data is not None else delay_ms

    def stage(call: Call) -> Flow:
        reply = yield from inward(call)
        wire = wire_of(call.wire)
        if wire is None or reply.status >= 400:
            scene.idle(UNKNOWN if wire is None else unchangeable(reply, call))
            return reply
        framing: Framing = wire.framing
        if (header(reply.headers, "content-encoding") or "identity").strip().lower() != "identity":
            framing = _pieces if reply.streamed else _nothing
        return by_frame(reply, framing, slow, document=lambda: scene.idle(WHOLE))

    return stage


def _pieces(_start: bytes, _media_type: str) -> Framer | None:
    return Pieces()


def _nothing(_start: bytes, _media_type: str) -> Framer | None:
    return None
