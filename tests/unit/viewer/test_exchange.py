import json
from pathlib import Path

import pytest

from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.tape.model import Exchange, Recorded
from flakestorm.viewer.exchange import BODY_CHARS, CHUNKS, decoded
from flakestorm.viewer.recording import Recording
from report_samples import HOSTILE
from viewer_support import recorded


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording.read(recorded(tmp_path / "r.tape"))


def test_a_model_call_is_its_messages_and_its_answer(recording: Recording) -> None:
    found = decoded(recording.exchange(0))
    assert [(turn["role"], turn["text"]) for turn in found["request"]["turns"]] == [
        ("system", "Be brief."),
        ("user", "Oslo is nice."),
    ]
    assert (found["request"]["model"], found["request"]["tools"]) == ("gpt-4o", ["search"])
    reply = found["reply"]
    assert (reply["text"], reply["finish"], reply["stream"]) == ("Oslo is nice.", "tool_calls", True)
    assert reply["calls"] == [{"name": "search", "arguments": "{}"}]
    assert [chunk["at_ms"] for chunk in reply["chunks"]] == [5.0] * 5
    assert found["world"] is None


def test_a_tool_call_with_a_fault_shows_what_fired(recording: Recording) -> None:
    found = decoded(recording.exchange(1))
    assert found["faults"][0]["mode"] == "error"
    assert (found["sent"], found["reply"]["status"], found["request"]["turns"]) == (0, 503, [])


def test_only_the_newest_messages_are_given() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": f"{n}"} for n in range(100)]}
    url = "https://api.openai.com/v1/chat/completions"
    exchange = Exchange(Site("llm", "m", 1), wire="openai_chat", url=url, body=json.dumps(asked).encode())
    found = decoded(exchange, turns=2)["request"]
    assert ([turn["text"] for turn in found["turns"]], found["turns_total"]) == (["98", "99"], 100)


def test_what_is_of_any_size_is_bounded() -> None:
    reply = Recorded(200, chunks=[b"x" * 1000] * 3000, at_ms=[1.0, 2.0], stream=True)
    found = decoded(Exchange(Site("http", "h", 1), body=b"y" * 10**6, reply=reply))
    assert len(found["reply"]["chunks"]) == CHUNKS
    assert found["reply"]["chunks_total"] == 3000
    assert found["reply"]["chunks"][-1]["at_ms"] == 2.0
    assert len(found["request"]["body"]) < BODY_CHARS + 100
    assert len(found["reply"]["body"]) < BODY_CHARS + 100


def test_hostile_text_is_made_visible() -> None:
    evil = HOSTILE.replace("\ud800", "")
    reply = Recorded(200, ((evil, evil),), evil, [evil.encode()], [1.0], error=evil)
    site = Site("tool", evil, 1)
    exchange = Exchange(site, lane=evil, url=evil, headers=((evil, evil),), body=evil.encode(), reply=reply,
                        faults=(Firing(site, evil, "tool", evil),), note=evil)  # fmt: skip
    said = json.dumps(decoded(exchange), ensure_ascii=False)
    assert not {"\x1b", "\u202e", "\x00", "\u2028"} & set(said)
