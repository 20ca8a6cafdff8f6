from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import JSON, RESULTS, SSE, llm_call, tool_call
from flakestorm.config.model import Chaos, ToolFault
from flakestorm.core.call import Reply
from flakestorm.core.site import Site
from flakestorm.faults.schedule import Schedule
from flakestorm.tape.document import Documents, document
from flakestorm.tape.model import Exchange, Recorded
from tape_support import ASKED, SAID, Run


def recorded(call, reply: Reply, faults: Schedule | None = None) -> dict:  # type: ignore[no-untyped-def,type-arg]
    run = Run(faults=faults)
    run.ask(call, lambda _: reply)
    return json.loads(json.dumps(document(run.recorder.exchanges[0])))


def test_a_model_call_is_told_by_its_meaning() -> None:
    shown = recorded(llm_call(body=ASKED), Reply(200, JSON, json.dumps(SAID).encode()))
    assert (shown["site"], shown["kind"], shown["name"], shown["wire"]) == (
        "llm/gpt-4o#1",
        "llm",
        "gpt-4o",
        "openai_chat",
    )
    assert shown["request"]["body"] == json.loads(ASKED)
    reply = shown["reply"]
    assert reply["text"] == "Searching."
    assert reply["tool_calls"] == [{"id": "call_1", "name": "search", "arguments": '{"to":"OSL"}'}]
    assert (reply["finish"], reply["usage"]) == ("tool_calls", {"input": 9, "output": 3})
    assert (reply["status"], reply["stream"], reply["chunks"]) == (200, False, [json.dumps(SAID)])
    assert (shown["world"], shown["faults"]) == (None, [])


def test_a_stream_is_its_pieces_and_their_meaning() -> None:
    deltas = [{"role": "assistant", "content": "Hé"}, {"content": "llo"}]
    events = [{"id": "1", "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    events.append({"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    whole = "".join(f"data: {json.dumps(e, ensure_ascii=False)}\n\n" for e in events) + "data: [DONE]\n\n"
    data = whole.encode()
    cut = data.index(b"\xc3") + 1  # in the middle of a character
    shown = recorded(llm_call(body=ASKED), Reply(200, SSE, [data[:cut], data[cut:]]))["reply"]
    assert (shown["stream"], shown["text"], shown["finish"]) == (True, "Héllo", "stop")
    assert len(shown["chunks"]) == 2
    assert "".join(shown["chunks"]) == whole


def test_a_tools_reply_is_its_text() -> None:
    shown = recorded(tool_call(), Reply(200, JSON, [RESULTS[:5], RESULTS[5:]]))
    assert (shown["request"]["method"], shown["request"]["body"]) == ("GET", "")
    reply = shown["reply"]
    assert (reply["text"], reply["chunks"]) == (RESULTS.decode(), [RESULTS.decode()])
    assert (reply["tool_calls"], reply["finish"], reply["usage"]) == ([], None, {"input": None, "output": None})


@pytest.mark.parametrize("kind", [JSON, SSE])
def test_compressed_bodies_are_shown_unpacked(kind: tuple[tuple[str, str], ...]) -> None:
    body = gzip.compress(RESULTS)
    shown = recorded(tool_call(), Reply(200, (*kind, ("content-encoding", "gzip")), [body[:7], body[7:]]))
    assert shown["reply"]["text"] == RESULTS.decode()
    assert "".join(shown["reply"]["chunks"]) == RESULTS.decode()


def test_what_a_fault_did_stands_beside_what_the_world_said() -> None:
    faults = Schedule.of(Chaos(tool_faults=[ToolFault(mode="malicious_response", payload="obey")]))
    shown = recorded(tool_call(), Reply(200, JSON, RESULTS), faults)
    assert shown["reply"]["text"] == '"obey"'
    assert shown["world"]["text"] == RESULTS.decode()
    assert shown["world"].keys() == shown["reply"].keys()
    assert shown["faults"] == [
        {"site": "tool/search#1", "mode": "malicious_response", "detail": "result replaced by the payload"}
    ]


def test_the_documented_keys_are_all_there() -> None:
    shown = document(Exchange(Site("http", "x", 1)))
    for key in ("site", "kind", "name", "lane", "request", "reply", "world", "faults", "t_ms", "duration_ms"):
        assert key in shown
    assert {"method", "url", "body"} <= shown["request"].keys()
    assert {"status", "stream", "chunks", "text", "tool_calls", "finish", "usage"} <= shown["reply"].keys()


@given(
    body=st.binary(),
    chunks=st.lists(st.binary(), max_size=4),
    coding=st.sampled_from(["", "gzip", "br", "\x00"]),
    wire=st.sampled_from(["", "openai_chat", "anthropic", "of-the-future"]),
    stream=st.booleans(),
)
def test_hostile_bytes_are_shown_and_never_raise(
    body: bytes, chunks: list[bytes], coding: str, wire: str, stream: bool
) -> None:
    reply = Recorded(200, (("content-encoding", coding),), chunks=chunks, stream=stream)
    json.dumps(document(Exchange(Site("llm", "m", 1), wire=wire, body=body, reply=reply)))


def test_a_request_that_a_fault_changed_is_shown_as_both_sides_know_it() -> None:
    told = {"model": "gpt-4o", "messages": [{"role": "tool", "tool_call_id": "c1", "content": "fine"}]}
    faults = Schedule.of(Chaos(tool_faults=[ToolFault(mode="error", error_code=500)]))
    shown = recorded(llm_call(body=json.dumps(told).encode()), Reply(200, JSON, json.dumps(SAID).encode()), faults)
    assert shown["request"]["body"] == told
    told["messages"][0]["content"] = "Error: 500 Internal Server Error"  # type: ignore[index]
    assert shown["world_request"] == {"body": told}
    assert shown["world"] is None
    assert shown["faults"] == [
        {"site": "tool/unknown#1", "mode": "error", "detail": "500 Internal Server Error"},
    ]


def test_a_request_that_nobody_changed_is_shown_once() -> None:
    assert recorded(llm_call(body=ASKED), Reply(200, JSON, b"{}"))["world_request"] is None


def test_documents_are_made_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = [Exchange(Site("tool", "search", n), reply=Recorded(200, chunks=[b"%d" % n])) for n in range(1, 6)]
    made: list[int] = []
    module = "flakestorm.tape.document.document"
    monkeypatch.setattr(module, lambda each: made.append(each.site.occurrence) or document(each))
    found = Documents(exchanges)
    assert (len(found), len(found[1:3]), made) == (5, 2, [])
    assert [each["reply"]["text"] for each in found[1:3]] == ["2", "3"]
    assert (found[-1]["site"], made) == ("tool/search#5", [2, 3, 5])
    assert found == Documents(exchanges) == list(found)
    assert found != found[1:]
    assert found != "documents"
