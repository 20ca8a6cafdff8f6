from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.reports.excerpt import BODY_CHARS, excerpt, exchange_view
from report_samples import exchanges

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_short_text_is_whole_and_long_text_keeps_both_ends() -> None:
    assert excerpt("short", 100) == "short"
    cut = excerpt("start" + "x" * 5000 + "end", 300)
    assert cut.startswith("start")
    assert cut.endswith("end")
    assert "4,708 characters left out" in cut
    assert len(cut) < 400


def test_a_model_exchange() -> None:
    first, _, last = (exchange_view(e) for e in exchanges())
    assert first["site"] == "llm/demo-1#1"
    assert first["request"] == "POST http://127.0.0.1:9/v1/chat/completions"
    assert '"role": "user"' in first["asked"]
    assert first["reply"]["tools"] == ['book_flight({"flight": "NW-118"})']
    assert first["reply"]["tokens"] == ["31", "12"]
    assert first["reply"]["text"] == ""
    assert (last["reply"]["stream"], last["reply"]["chunks"]) == (True, 3)
    assert "characters left out" in last["asked"]
    assert len(last["asked"]) < BODY_CHARS + 100


def test_a_faulted_exchange_shows_both_sides() -> None:
    broken = exchange_view(exchanges()[1])
    assert broken["faults"] == [["timeout", "no reply in 300 ms"]]
    assert broken["reply"]["status"] == 0
    assert broken["world"]["status"] == 201
    assert "NW-118" in broken["world"]["text"]  # no model spoke, so the bytes are shown
    assert broken["sent"] == 1
    assert broken["world"]["tokens"] is None


def test_tokens_are_shown_as_far_as_they_were_counted() -> None:
    def tokens(usage: object) -> object:
        return exchange_view({"reply": {"usage": usage}})["reply"]["tokens"]

    assert tokens({"input": 0, "output": None}) == ["0", "?"]
    assert tokens({"input": None, "output": None}) is None


def test_an_empty_exchange_reads_as_empty() -> None:
    view = exchange_view({})
    assert (view["site"], view["faults"], view["world"], view["t_ms"]) == ("", [], None, 0.0)


@given(key=st.sampled_from(["request", "reply", "world", "faults", "t_ms", "site", "sent"]), value=json_values)
def test_whatever_a_tape_says_is_a_view_the_page_can_hold(key: str, value: object) -> None:
    orjson.dumps(exchange_view({**exchanges()[1], key: value}))
    orjson.dumps(exchange_view({"reply": {"status": value, "chunks": value, "usage": value, "tool_calls": [value]}}))
