import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import Reply
from flakestorm.core.stream import pump
from flakestorm.wire.base import Edit
from flakestorm.wire.sse import encode, events
from flakestorm.wire.tokens import count_tokens
from wire_responses import REASONING, SEARCH, SSE, WIRE, documents, edited, message, said, streamed, tool, whole
from wire_support import Fired

CALL = tool("search", '{"query":"weather in Paris"}')
ANSWER = (REASONING, message("The weather in Paris"), CALL)


def kinds(body: bytes) -> list[str]:
    return [doc["type"].removeprefix("response.") for doc in documents(body)]


def agrees(body: bytes) -> None:
    """Every event states what the others state, numbered without gaps, and named as it says it is."""
    docs = documents(body)
    assert [doc["sequence_number"] for doc in docs] == list(range(len(docs)))
    assert [event.name for event in events(body)] == [doc["type"] for doc in docs]
    deltas: dict[tuple[int, int], str] = {}
    items: list[object] = []
    for doc in docs:
        key = doc.get("output_index", 0), doc.get("content_index", -1)
        match doc["type"].removeprefix("response."):
            case "output_item.added":
                assert doc["output_index"] == len(items)
                items.append(None)
            case "output_text.delta" | "function_call_arguments.delta":
                deltas[key] = deltas.get(key, "") + doc["delta"]
            case "output_text.done":
                assert doc["text"] == deltas.get(key, "")
            case "content_part.done":
                assert doc["part"]["text"] == deltas.get(key, "")
            case "function_call_arguments.done":
                assert doc["arguments"] == deltas.get(key, "")
            case "output_item.done":
                items[doc["output_index"]] = doc["item"]
    last = docs[-1]
    assert last["type"] == f"response.{last['response']['status']}"
    assert last["response"]["output"] == items


def test_a_stream_is_cut_within_its_delta_and_ends_as_the_world_s_does() -> None:
    fired, body = Fired(), streamed(*ANSWER)
    out = edited(body, Edit(max_tokens=2, on_change=fired))
    agrees(out)
    assert fired.times == 1
    assert [event.raw for event in events(out)][:8] == [event.raw for event in events(body)][:8]
    tail = ["output_text.delta", "output_text.done", "content_part.done", "output_item.done", "incomplete"]
    assert kinds(out)[-5:] == tail
    read = said(out)
    assert (read.text, read.tool_calls, read.finish, read.complete) == ("The weat", (), "incomplete", True)
    assert documents(out)[-2]["item"]["status"] == "incomplete"


def test_a_tool_call_is_cut_or_left_out() -> None:
    out = edited(streamed(message("Hi"), CALL), Edit(max_tokens=6))
    agrees(out)
    assert [call.arguments for call in said(out).tool_calls] == ['{"query"']
    for limit in (0, 1):
        out = edited(streamed(message("Hi"), CALL), Edit(max_tokens=limit))
        agrees(out)
        assert (said(out).tool_calls, said(out).finish) == ((), "incomplete")


def test_what_openai_ran_is_neither_cut_nor_counted() -> None:
    body = streamed(SEARCH, message("one"))
    assert edited(body, Edit(max_tokens=1)) == body


def test_text_is_mapped_wherever_it_is_stated() -> None:
    out = edited(streamed(REASONING, message("so ", "it is"), CALL), Edit(text=lambda text: text.upper() + "!"))
    agrees(out)
    assert (said(out).text, said(out).tool_calls[0].arguments) == ("SO IT IS!", CALL["arguments"])
    assert out.count(b"secret") == streamed(REASONING).count(b"secret")


@pytest.mark.parametrize("items", [(REASONING, CALL), (REASONING,), ()], ids=len)
def test_a_message_is_put_in_where_there_was_no_text(items) -> None:
    out = edited(streamed(*items), Edit(text=lambda _: "new words"))
    agrees(out)
    assert said(out).text == "new words"
    assert len(said(out).tool_calls) == (CALL in items)
    assert said(edited(streamed(*items), Edit(text=lambda _: "new words", max_tokens=1))).text == "new"


def test_tool_calls_are_left_out_and_what_follows_moves_up() -> None:
    out = edited(streamed(CALL, message("Hi"), tool("other", "{}"), SEARCH), Edit(drop_tool_calls=True))
    agrees(out)
    assert [doc["item"]["type"] for doc in documents(out) if "item" in doc and doc["type"].endswith("done")] == [
        "message",
        "web_search_call",
    ]


def test_a_stream_passes_at_once_up_to_the_cut() -> None:
    chunks = [event.raw for event in events(streamed(*ANSWER))]
    assert list(pump(WIRE.edit(Reply(200, SSE, list(chunks)), Edit(max_tokens=99)), lambda _: None)) == chunks


def test_text_that_is_only_stated_when_it_is_done_is_edited_too() -> None:
    docs = [doc for doc in documents(streamed(*ANSWER)) if not doc["type"].endswith(".delta")]
    body = b"".join(encode(orjson.dumps(doc), name=doc["type"]) for doc in docs)
    cut = said(edited(body, Edit(max_tokens=2)))
    assert (cut.text, cut.tool_calls, cut.finish) == ("The weat", (), "incomplete")
    assert said(edited(body, Edit(text=str.upper))).text == "THE WEATHER IN PARIS"


def test_a_failure_is_given_no_words() -> None:
    docs = [
        *documents(streamed())[:1],
        {"type": "response.failed", "sequence_number": 1, "response": {"status": "failed"}},
    ]
    body = b"".join(encode(orjson.dumps(doc), name=doc["type"]) for doc in docs)
    assert edited(body, Edit(text=lambda _: "new", max_tokens=0)) == body


def test_a_stream_without_numbers_gets_none() -> None:
    docs = documents(streamed(CALL))
    for doc in docs:
        del doc["sequence_number"]
    body = b"".join(encode(orjson.dumps(doc), name=doc["type"]) for doc in docs)
    assert b"sequence_number" not in edited(body, Edit(text=lambda _: "new", drop_tool_calls=True))


@given(
    st.lists(st.text("ab ,\n", max_size=12), max_size=3),
    st.lists(st.text('{}":a1', max_size=12), max_size=2),
    st.integers(0, 25),
    st.integers(1, 5),
)
def test_whole_and_streamed_answers_are_cut_alike(
    texts: list[str], arguments: list[str], limit: int, size: int
) -> None:
    items = [*(message(text) for text in texts), *(tool(f"f{at}", text) for at, text in enumerate(arguments))]
    edit = Edit(max_tokens=limit)
    out = edited(streamed(*items, size=size), edit)
    one = said(edited(whole(*items), edit))
    assert one == said(out)
    agrees(out)
    assert count_tokens(one.text) <= limit
