import json
from typing import Any

import pytest

from flakestorm.core.call import Call
from flakestorm.core.site import Site
from flakestorm.tape.history import Histories, kept_by_provider
from flakestorm.tape.model import Exchange
from replay_support import exchange, reply
from wire_responses import REASONING, SEARCH, message, response, tool

URL = "https://api.openai.com/v1/responses"


def turn(n: int, asked: dict[str, Any], *items: dict[str, Any], sent: int = 0, stream: bool = False) -> Exchange:
    answer = {**response(*items), "id": f"resp_{n}"}
    said = reply(json.dumps(answer))
    if stream:
        said = reply(f"data: {json.dumps({'type': 'response.completed', 'response': answer})}\n\n", stream=True)
    site = Site("llm", "gpt-5", n + 1)
    return exchange(n, {"model": "gpt-5", **asked}, said, url=URL, wire="openai_responses", site=site, sent=sent)


def asked(**body: Any) -> Call:
    return Call("POST", URL, body=json.dumps({"model": "gpt-5", **body}).encode(), wire="openai_responses")


RESULT = {"type": "function_call_output", "call_id": "call_f", "output": "3"}


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_provider_never_made_is_told_in_full(stream: bool) -> None:
    made = [
        turn(0, {"input": "hi"}, REASONING, tool("f", "{}"), stream=stream),
        turn(1, {"input": [RESULT], "previous_response_id": "resp_0"}, message("well"), stream=stream),
    ]
    call = Histories(lambda: made).stage(asked(input="and?", previous_response_id="resp_1", temperature=0))
    body = json.loads(call.body)
    assert "previous_response_id" not in body
    assert body["temperature"] == 0
    assert body["input"] == [
        {"role": "user", "content": "hi"},
        {key: value for key, value in REASONING.items() if key != "status"},
        {"type": "function_call", "arguments": "{}", "call_id": "call_f", "name": "f"},
        RESULT,
        {"role": "assistant", "content": "well"},
        {"role": "user", "content": "and?"},
    ]


def test_what_the_provider_made_itself_is_left_to_it() -> None:
    call = asked(input="and?", previous_response_id="resp_0")
    assert Histories(lambda: [turn(0, {"input": "hi"}, message("well"), sent=1)]).stage(call) is call
    assert Histories(list).stage(call) is call
    other = Call("POST", URL, body=b'{"previous_response_id": "resp_0"}', wire="openai_chat")
    assert Histories(list).stage(other) is other


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ([turn(0, {"input": "hi"}, message("a"))], None),
        ([turn(0, {"input": "hi", "conversation": "conv_1"}, message("a"))], "conversation"),
        ([turn(0, {"input": "hi", "previous_response_id": "resp_9"}, message("a"))], "resp_9"),
        (
            [turn(0, {"input": "hi"}, SEARCH), turn(1, {"input": "x", "previous_response_id": "resp_0"})],
            "only the prov",
        ),
        ([exchange(0, {}, url="https://api.openai.com/v1/threads/t_1/runs", wire="")], "threads/t_1"),
    ],
)
def test_what_cannot_be_told_again_is_refused(made: list[Exchange], told: str | None) -> None:
    why = kept_by_provider(made, lambda exchange: exchange.n < 1)
    assert (why is None) if told is None else (told in (why or ""))


def test_hosted_items_do_not_matter_where_the_world_made_them() -> None:
    made = [turn(0, {"input": "hi"}, SEARCH), turn(1, {"input": "x", "previous_response_id": "resp_0"})]
    assert kept_by_provider(made, lambda _: False) is None
