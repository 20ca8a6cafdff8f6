from __future__ import annotations

import json
import re
import threading

import pytest

from flakestorm.core.call import Headers
from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.wire.base import ToolCall
from flakestorm.wire.conversation import (
    DIALECTS,
    CallNames,
    dialect_of,
    holds_results,
    results_read,
    rewrite,
    tool_results,
)
from flakestorm.wire.results import Told
from upstream import anthropic_messages, anthropic_stream, openai_chat, openai_stream

CALLS = [("c1", "search", {"q": "Oslo"}), ("c2", "pay", {})]
SAID = {
    "openai, whole": ("openai_chat", openai_chat(tool_calls=CALLS)),
    "openai, streamed": ("openai_chat", openai_stream(tool_calls=CALLS)),
    "anthropic, whole": ("anthropic", anthropic_messages(tool_calls=CALLS)),
    "anthropic, streamed": ("anthropic", anthropic_stream(tool_calls=CALLS)),
}


def test_every_dialect_is_known_by_the_name_of_its_wire() -> None:
    of_a_room = {"openai_chat", "openai_responses", "anthropic", "gemini", "ollama"}
    assert set(DIALECTS) == of_a_room | {"completions", "interactions"}
    for dialect in map(dialect_of, DIALECTS):
        assert dialect is not None
        assert list(dialect.find({})) == []


def test_of_an_unknown_wire_there_are_no_results() -> None:
    assert tool_results("", b"{}") == tool_results("morse", b'{"messages": []}') == ()


def test_results_are_found_named_and_rewritten() -> None:
    body = b'{"messages": [{"role": "tool",  "tool_call_id": "c1", "content": "old"}]}'
    (result,) = tool_results("openai_chat", body, name_of={"c1": "search"}.get)  # type: ignore[arg-type]
    assert result.name == "search"
    assert rewrite("openai_chat", body, [(result, Told("new"))]) == body.replace(b"old", b"new")


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("bedrock", {"toolResult": {"toolUseId": "t1", "content": [{"text": "3 hits"}]}}),
        ("bedrock_invoke", {"type": "tool_result", "tool_use_id": "t1", "content": "3 hits"}),
    ],
)
def test_results_in_signed_requests_are_read_and_not_to_be_rewritten(wire: str, message: dict[str, object]) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": [message]}]}).encode()
    (result,) = results_read(wire, body, name_of={"t1": "search"}.get)  # type: ignore[arg-type]
    assert (result.name, result.told) == ("search", Told("3 hits"))
    assert (tool_results(wire, body), holds_results(wire, body)) == ((), False)
    with pytest.raises(LookupError, match="carry no tool results"):
        rewrite(wire, body, [(result, Told("new"))])


def test_rewriting_a_result_of_another_body_is_an_error() -> None:
    (result,) = tool_results("openai_chat", b'{"messages": [{"role": "tool"}]}')
    with pytest.raises(LookupError):
        rewrite("openai_chat", b'{"messages": []}', [(result, Told("new"))])


def noted(wire: str, *chunks: bytes, status: int = 200, headers: Headers = (), stream: bool = False) -> Exchange:
    reply = Recorded(status, headers, chunks=list(chunks), stream=stream)
    return Exchange(Site("llm", "m", 1), wire=wire, reply=reply)


@pytest.mark.parametrize("name", SAID)
def test_names_are_learnt_from_what_was_noted(name: str) -> None:
    wire, canned = SAID[name]
    record: list[Exchange] = []
    names = CallNames(lambda: record)
    assert names.name_of("c1") == "", "nothing has been said yet"

    pieces = [piece for piece in canned.pieces if isinstance(piece, bytes)]
    record.append(noted(wire, *pieces, headers=canned.headers, stream="streamed" in name))

    assert (names.name_of("c1"), names.name_of("c2"), names.name_of("c3"), names.name_of("")) == (
        ("search", "pay", "", "")
    )


def test_a_stream_that_is_under_way_is_read_as_far_as_it_came() -> None:
    pieces = [piece for piece in openai_stream(tool_calls=CALLS).pieces if isinstance(piece, bytes)]
    record = [noted("openai_chat", stream=True)]
    names = CallNames(lambda: record)
    known = ["" for _ in pieces]
    for at, piece in enumerate(pieces):
        record[0].reply.chunks.append(piece)
        known[at] = names.name_of("c1") + " " + names.name_of("c2")
    assert known[0] == " "
    assert known.index("search ") < known.index("search pay")
    assert known[-1] == "search pay"


def test_what_was_read_is_not_read_again() -> None:
    whole = openai_chat(tool_calls=CALLS)
    record = [noted("openai_chat", *(piece for piece in whole.pieces if isinstance(piece, bytes)))]
    names = CallNames(lambda: record)
    assert names.name_of("c9") == ""
    record[0].reply.chunks[0] = b"{}"  # had it been left for later, this would have been read
    assert names.name_of("c1") == "search"


@pytest.mark.parametrize(("wire", "status"), [("", 200), ("morse", 200), ("openai_chat", 429)])
def test_what_no_wire_can_read_and_an_error_teach_nothing(wire: str, status: int) -> None:
    pieces = [piece for piece in openai_chat(tool_calls=CALLS).pieces if isinstance(piece, bytes)]
    assert CallNames(lambda: [noted(wire, *pieces, status=status)]).name_of("c1") == ""


@pytest.mark.parametrize("body", [b"", b"{", b'{"choices": [{"message": {"tool_calls": [{}, {"id": 3}]}}]}'])
def test_what_is_no_reply_of_a_model_teaches_nothing(body: bytes) -> None:
    assert CallNames(lambda: [noted("openai_chat", body)]).name_of("c1") == ""


def test_names_may_be_told() -> None:
    names = CallNames()
    names.learn([ToolCall("c1", "search", "{}"), ToolCall("", "pay", "{}"), ToolCall("c2", "", "{}")])
    assert (names.name_of("c1"), names.name_of("c2")) == ("search", "")


def test_several_threads_may_ask_while_replies_pass() -> None:
    record: list[Exchange] = []
    names, failures = CallNames(lambda: list(record)), list[BaseException]()
    _, canned = SAID["openai, streamed"]
    pieces = [piece for piece in canned.pieces if isinstance(piece, bytes)]

    def agent() -> None:
        try:
            for _ in range(20):
                record.append(exchange := noted("openai_chat", headers=canned.headers, stream=True))
                for piece in pieces:
                    exchange.reply.chunks.append(piece)
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


# --- only requests that can hold a result are read --------------------------------------------------------------------

HOLDING = {
    "openai_chat": {"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]},
    "openai_chat, older": {"messages": [{"role": "function", "name": "search", "content": "x"}]},
    "openai_responses": {"input": [{"type": "function_call_output", "call_id": "c1", "output": "x"}]},
    "openai_responses, custom": {"input": [{"type": "custom_tool_call_output", "call_id": "c1", "output": "x"}]},
    "openai_responses, shell": {"input": [{"type": "local_shell_call_output", "id": "c1", "output": "x"}]},
    "openai_responses, patch": {"input": [{"type": "apply_patch_call_output", "call_id": "c1", "output": "x"}]},
    "anthropic": {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}]},
    "gemini": {"contents": [{"parts": [{"functionResponse": {"name": "search", "response": {"result": "x"}}}]}]},
    "gemini, proto": {"contents": [{"parts": [{"function_response": {"name": "s", "response": {"result": "x"}}}]}]},
    "ollama": {"messages": [{"role": "tool", "content": "x"}]},
}


@pytest.mark.parametrize("name", HOLDING)
@pytest.mark.parametrize("spelling", ["compact", "spaced", "escaped"])
def test_a_request_that_holds_a_result_is_read_however_it_is_spelled(name: str, spelling: str) -> None:
    text = json.dumps(HOLDING[name], separators=(",", ":") if spelling == "compact" else None)
    if spelling == "spaced":
        text = json.dumps(HOLDING[name], indent=2).replace(":", " :\t")
    if spelling == "escaped":  # as no client writes, and any might
        text = re.sub(r'"([a-z_]+)"', lambda word: '"' + "".join(f"\\u{ord(c):04x}" for c in word[1]) + '"', text)
    assert len(tool_results(name.split(",")[0], text.encode())) == 1


def test_a_request_without_results_is_not_read() -> None:
    body = b'{"messages": [{"role": "user", "content": "a tool"}], "tools": [{"type": "function"}], "broken": '
    assert not any(holds_results(wire, body) for wire in (*DIALECTS, "", "morse"))
    assert holds_results("openai_chat", body + b'"\\u0074ool"')
