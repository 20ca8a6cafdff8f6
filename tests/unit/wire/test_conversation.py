from __future__ import annotations

import json
import threading

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.core.stream import pump
from flakestorm.wire.base import ToolCall
from flakestorm.wire.conversation import DIALECTS, CallNames, rewrite, tool_results
from flakestorm.wire.results import Told
from upstream import anthropic_messages, anthropic_stream, openai_chat, openai_stream

CALLS = [("c1", "search", {"q": "Oslo"}), ("c2", "pay", {})]
SAID = {
    "openai, whole": ("openai_chat", openai_chat(tool_calls=CALLS)),
    "openai, streamed": ("openai_chat", openai_stream(tool_calls=CALLS)),
    "anthropic, whole": ("anthropic", anthropic_messages(tool_calls=CALLS)),
    "anthropic, streamed": ("anthropic", anthropic_stream(tool_calls=CALLS)),
}


def call(wire: str) -> Call:
    return Call("POST", "https://api.test/", kind="llm", wire=wire)


def test_every_dialect_is_known_by_the_name_of_its_wire() -> None:
    assert set(DIALECTS) == {"openai_chat", "openai_responses", "anthropic", "gemini", "ollama"}
    for dialect in DIALECTS.values():
        assert list(dialect.find({})) == []


def test_of_an_unknown_wire_there_are_no_results() -> None:
    assert tool_results("", b"{}") == tool_results("morse", b'{"messages": []}') == ()


def test_results_are_found_named_and_rewritten() -> None:
    body = b'{"messages": [{"role": "tool",  "tool_call_id": "c1", "content": "old"}]}'
    (result,) = tool_results("openai_chat", body, name_of={"c1": "search"}.get)  # type: ignore[arg-type]
    assert result.name == "search"
    assert rewrite("openai_chat", body, [(result, Told("new"))]) == body.replace(b"old", b"new")


def test_rewriting_a_result_of_another_body_is_an_error() -> None:
    (result,) = tool_results("openai_chat", b'{"messages": [{"role": "tool"}]}')
    with pytest.raises(LookupError):
        rewrite("openai_chat", b'{"messages": []}', [(result, Told("new"))])


@pytest.mark.parametrize("name", SAID)
def test_names_are_learnt_from_replies_as_they_pass(name: str) -> None:
    wire, canned = SAID[name]
    names = CallNames()
    pieces = [piece for piece in canned.pieces if isinstance(piece, bytes)]
    reply = names.listen(call(wire), Reply(200, canned.headers, list(pieces)))
    assert names.name_of("c1") == "", "nothing has been said yet"

    assert list(pump(reply, lambda _: None)) == pieces

    assert (names.name_of("c1"), names.name_of("c2"), names.name_of("c3"), names.name_of("")) == (
        ("search", "pay", "", "")
    )


def test_a_stream_that_nobody_has_let_go_of_is_heard_as_far_as_it_came() -> None:
    names = CallNames()
    pieces = [piece for piece in openai_stream(tool_calls=CALLS).pieces if isinstance(piece, bytes)]
    headers = (("content-type", "text/event-stream"),)
    chunks = pump(names.listen(call("openai_chat"), Reply(200, headers, list(pieces))), lambda _: None)
    heard = ["" for _ in pieces]
    for at in range(len(pieces)):
        next(chunks)
        heard[at] = names.name_of("c1") + " " + names.name_of("c2")
    chunks.close()  # type: ignore[attr-defined]  # pump() is a generator
    assert heard[0] == " "
    assert heard.index("search ") < heard.index("search pay")
    assert heard[-1] == "search pay"


@pytest.mark.parametrize(
    ("wire", "reply"),
    [
        ("", Reply(200, (), b"{}")),
        ("openai_chat", Reply(429, (), b"{}")),
    ],
)
def test_what_cannot_be_read_is_not_listened_to(wire: str, reply: Reply) -> None:
    assert CallNames().listen(call(wire), reply) is reply


def test_what_is_no_reply_of_a_model_teaches_nothing() -> None:
    names = CallNames()
    for body in (b"", b"{", json.dumps({"choices": [{"message": {"tool_calls": [{}, {"id": 3}]}}]}).encode()):
        list(pump(names.listen(call("openai_chat"), Reply(200, (), body)), lambda _: None))
    assert names.name_of("c1") == ""


def test_names_may_be_told() -> None:
    names = CallNames()
    names.learn([ToolCall("c1", "search", "{}"), ToolCall("", "pay", "{}"), ToolCall("c2", "", "{}")])
    assert (names.name_of("c1"), names.name_of("c2")) == ("search", "")


def test_several_threads_may_ask_while_replies_pass() -> None:
    names, failures = CallNames(), list[BaseException]()
    _, canned = SAID["openai, streamed"]
    pieces = [piece for piece in canned.pieces if isinstance(piece, bytes)]

    def agent() -> None:
        try:
            for _ in range(20):
                for _ in pump(
                    names.listen(call("openai_chat"), Reply(200, canned.headers, list(pieces))), lambda _: None
                ):
                    names.name_of("c9")
            assert names.name_of("c2") == "pay"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=agent) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
