from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import BadRequestError, OpenAI

from flakestorm.demo.model import ScriptedModel, Step, next_step
from flakestorm.demo.server import Ask, serving

BOOK = "Book the cheapest flight to Oslo on 12 May for Ada Lovelace."
FLIGHTS = {"flights": [{"flight": "NW-204", "price_eur": 184}, {"flight": "NW-118", "price_eur": 129}]}


def conversation(request: str, *results: tuple[str, Any]) -> list[dict[str, Any]]:
    """The messages after these tools gave these results."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}, {"role": "user", "content": request}]
    for n, (tool, result) in enumerate(results):
        call = {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        messages.append({"role": "assistant", "tool_calls": [call]})
        content = result if isinstance(result, str) else json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": content})
    return messages


def test_it_searches_then_books_the_cheapest_then_tells() -> None:
    search = next_step(conversation(BOOK))
    assert (search.call, json.loads(search.arguments)) == ("search_flights", {"to": "Oslo", "date": "12 May"})
    book = next_step(conversation(BOOK, ("search_flights", FLIGHTS)))
    assert book.call == "book_flight"
    assert json.loads(book.arguments) == {"flight": "NW-118", "date": "12 May", "passenger": "Ada Lovelace"}
    done = ("book_flight", {"status": "confirmed", "reference": "FS1"})
    told = next_step(conversation(BOOK, ("search_flights", FLIGHTS), done))
    assert told == Step("Your flight NW-118 to Oslo on 12 May is booked. Your reference is FS1.")


@pytest.mark.parametrize("result", [{"error": "503"}, "no JSON", [1, 2]])
def test_it_admits_that_a_search_failed(result: Any) -> None:
    said = next_step(conversation(BOOK, ("search_flights", result))).text
    assert "unavailable" in said
    assert "Nothing has been booked" in said


def test_it_admits_a_failed_booking_but_believes_a_tool_that_hides_one() -> None:
    found = ("search_flights", FLIGHTS)
    assert "could not book" in next_step(conversation(BOOK, found, ("book_flight", {"error": "timeout"}))).text
    assert "is booked" in next_step(conversation(BOOK, found, ("book_flight", {"status": "accepted"}))).text


def test_it_does_not_book_unasked() -> None:
    request = "Which flights to Vienna are there on 9 July? Do not book anything yet."
    flights = {"flights": [{"flight": "AL-77", "price_eur": 98}]}
    said = next_step(conversation(request, ("search_flights", flights)))
    assert said == Step("The cheapest flight to Vienna on 9 July is AL-77 for 98 EUR.")


def test_it_says_so_when_there_is_no_flight_no_city_or_no_question() -> None:
    assert "no flights to Oslo" in next_step(conversation(BOOK, ("search_flights", {"flights": []}))).text
    assert "Where would you like to go" in next_step(conversation("Hello!")).text
    assert next_step([]).text


def test_only_what_follows_the_last_request_counts() -> None:
    before = conversation(BOOK, ("search_flights", FLIGHTS))
    assert next_step([*before, {"role": "user", "content": BOOK}]).call == "search_flights"


tool_results = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["flights", "flight", "price_eur", "reference", "error"]), inner, max_size=3)
    ),
)


@given(st.sampled_from([BOOK, "Any flights to Oslo?"]), tool_results)
def test_whatever_a_tool_says_it_goes_on(request: str, result: Any) -> None:
    step = next_step(conversation(request, ("search_flights", result)))
    assert bool(step.text) != bool(step.call)
    assert next_step(conversation(request, ("search_flights", FLIGHTS), ("book_flight", result))).text


def calls(message: Any) -> list[tuple[str, str, str]]:
    return [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]


def test_the_official_sdk_reads_it_whole_and_streamed_alike() -> None:
    with serving(ScriptedModel()) as url, OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        assert [model.id for model in client.models.list()] == ["scripted"]
        for messages in (conversation(BOOK), conversation(BOOK, ("search_flights", {"error": "503"}))):
            asked: Any = {"model": "m", "messages": messages}
            whole = client.chat.completions.create(**asked)
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                for _ in stream:
                    pass
                streamed = stream.get_final_completion()
            one, other = whole.choices[0], streamed.choices[0]
            assert one.finish_reason == other.finish_reason
            assert one.message.content == other.message.content
            assert calls(one.message) == calls(other.message)
            assert whole.usage == streamed.usage
            assert whole.id == streamed.id  # the same question, the same answer, ids included


def test_it_refuses_as_the_provider_does() -> None:
    with (
        serving(ScriptedModel()) as url,
        OpenAI(base_url=f"{url}/v1", api_key="none") as client,
        pytest.raises(BadRequestError, match="messages"),
    ):
        client.post("/chat/completions", body={"model": "m"}, cast_to=object)
    assert ScriptedModel()(Ask("GET", "/v1/other")).status == 404
