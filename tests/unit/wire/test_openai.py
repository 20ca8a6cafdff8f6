import pytest

from flakestorm.wire.base import Failure, Wire
from flakestorm.wire.openai_chat.protocol import OpenAIChat
from flakestorm.wire.openai_responses.protocol import OpenAIResponses
from flakestorm.wire.sse import Parser
from model_replies import call_of

WIRES: list[tuple[Wire, str]] = [(OpenAIChat(), "openai_chat"), (OpenAIResponses(), "openai_responses")]


@pytest.mark.parametrize(("wire", "name"), WIRES)
def test_both_fail_and_filter_alike(wire: Wire, name: str) -> None:
    call = call_of(name)
    other, _ = WIRES[name == "openai_chat"]
    assert wire.recognises(call)
    assert not other.recognises(call)
    rate_limit = wire.failure(Failure("rate_limit"), call)
    assert rate_limit.status == 429
    assert b"Rate limit reached for m on" in rate_limit.body  # type: ignore[operator]
    assert b'"invalid_prompt"' in wire.blocked(call).body  # type: ignore[operator, union-attr]
    assert isinstance(wire.framing(b"data: 1", "text/event-stream"), Parser)
    assert wire.framing(b"{", "application/json") is None
    assert b'"server_is_overloaded"' in (wire.failure_event(Failure("overloaded"), call, after=3) or b"")
