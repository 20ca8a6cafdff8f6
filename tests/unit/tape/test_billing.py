import json
from typing import Any

import pytest

from flakestorm.core.call import Call
from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.errors import CallFailed
from flakestorm.importers.taping import exchanges_of
from flakestorm.tape.billing import Bill, bill, billed
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.base import Usage
from flakestorm.wire.prices import Price


def model_call(*, model: str = "gpt-4o", usage: bool = True, sent: int = 1, status: int = 200, **more) -> Exchange:
    said = {
        "id": "1", "object": "chat.completion", "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        **({"usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}} if usage else {}),
    }  # fmt: skip
    reply = Recorded(status, (("content-type", "application/json"),), chunks=[json.dumps(said).encode()])
    return Exchange(
        Site("llm", model, 1), wire="openai_chat", method="POST", url="https://api.openai.com/v1/chat/completions",
        body=json.dumps({"model": model, "messages": []}).encode(), reply=reply, sent=sent, **more,
    )  # fmt: skip


def test_tokens_and_dollars_are_summed() -> None:
    found = bill([model_call(), model_call(), Exchange(Site("tool", "search", 1), sent=1)])
    assert found.tokens == 240
    assert found.cost is not None
    assert found.cost > 0
    assert bill([]) == Bill(0, 0.0)
    assert bill([model_call(sent=2)]) == found  # a fault that delivers twice


def test_what_never_went_out_costs_nothing() -> None:
    """A tape answered in the world's place, or a fault did."""
    assert bill([model_call(sent=0)]) == Bill(0, 0.0)
    assert billed(model_call(sent=0)) == Usage(100, 20)  # what it would have been, for rules on recorded runs
    fault = Firing(Site("llm", "gpt-4o", 1), "empty", "llm")
    assert billed(model_call(sent=0, faults=(fault,))) == Usage(0, 0)
    assert billed(model_call(status=429)) == Usage(0, 0)


@pytest.mark.parametrize(
    ("how", "usage"),
    [("refused", Usage(0, 0)), ("timeout", None), ("reset", None)],  # who was reached may have worked, and bills it
)
def test_what_nobody_waited_for_may_have_been_billed(how: Any, usage: Usage | None) -> None:
    asked = Call(
        "POST",
        "https://api.openai.com/v1/chat/completions",
        (("content-type", "application/json"),),
        b'{"model": "gpt-4o", "messages": []}',
    )
    (found,) = exchanges_of([(asked, CallFailed(how, "after 10 s"))])
    assert (found.kind, found.sent, found.reply.status) == ("llm", 1, 0)
    assert billed(found) == usage
    assert bill([found]) == (Bill(None, None) if usage is None else Bill(0, 0.0))


def test_what_nobody_said_is_not_nothing() -> None:
    assert bill([model_call(), model_call(usage=False)]) == Bill(None, None)
    assert bill([model_call(model="nobody-knows-it")]) == Bill(120, None)
    assert bill([model_call(model="nobody-knows-it")], {"nobody-knows-it": Price(1e6, 0)}) == Bill(120, 100.0)
