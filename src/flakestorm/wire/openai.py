"""What OpenAI's two protocols have in common: the errors, the filter, and that they stream in events."""

from __future__ import annotations

from typing import Protocol

from flakestorm.core.call import Call, Reply
from flakestorm.wire.base import Failure
from flakestorm.wire.frames import Framer, sse_framing
from flakestorm.wire.provider_errors import openai_blocked, openai_error, openai_error_object
from flakestorm.wire.shape import Doc

__all__ = ["OpenAI"]


class OpenAI(Protocol):
    """The part of `base.Wire` that does not depend on the protocol; each of the two inherits it."""

    def model_of(self, call: Call) -> str | None:
        """The model this call asks for, None if the call is not one of this protocol."""
        ...

    def recognises(self, call: Call) -> bool:
        """Whether this call speaks this protocol: what `model_of` says."""
        return self.model_of(call) is not None

    def failure(self, failure: Failure, call: Call) -> Reply:
        """The error OpenAI answers with."""
        return openai_error(failure, model=self._model(call), call=call)

    def error_object(self, failure: Failure, call: Call) -> Doc:
        """The same as it stands under `error` in the event of a stream."""
        return openai_error_object(failure, model=self._model(call))

    def blocked(self, call: Call, message: str = "") -> Reply:
        """The 400 of OpenAI, or of Azure, for a prompt that was flagged."""
        return openai_blocked(call, message)

    def framing(self, start: bytes, media_type: str) -> Framer | None:
        """Events."""
        return sse_framing(start, media_type)

    def _model(self, call: Call) -> str:
        return self.model_of(call) or "this model"
