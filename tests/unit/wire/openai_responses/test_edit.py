import orjson
import pytest

from flakestorm.wire.base import Edit
from flakestorm.wire.editing import Change
from flakestorm.wire.openai_responses.edit import rewrite_body
from wire_responses import REASONING, SEARCH, message, response, tool, whole
from wire_support import Fired

CALL = tool("search", '{"query":"weather in Paris"}')


def after(doc: object, edit: Edit):
    return orjson.loads(rewrite_body(orjson.dumps(doc), edit, Change(edit)))


def test_a_text_is_cut_and_nothing_follows_it() -> None:
    fired = Fired()
    doc = after(response(REASONING, message("The weather in Paris"), CALL), Edit(max_tokens=2, on_change=fired))
    assert doc["output"] == [REASONING, {**message("The weat"), "status": "incomplete"}]
    assert (doc["status"], doc["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert doc["usage"]["output_tokens"] == 6  # two, and four of reasoning
    assert doc["usage"]["total_tokens"] == 13
    assert fired.times == 1


def test_cut_arguments_stay_a_json_prefix() -> None:
    doc = after(response(CALL), Edit(max_tokens=5))
    assert (doc["output"][0]["arguments"], doc["output"][0]["status"]) == ('{"query"', "incomplete")


def test_an_item_that_would_begin_after_the_end_is_left_out() -> None:
    doc = after(response(message("one two"), CALL), Edit(max_tokens=2))
    assert doc["output"] == [message("one two")]
    assert after(response(message("one", "two")), Edit(max_tokens=1))["output"][0]["content"][1]["text"] == ""


def test_an_answer_that_is_not_longer_is_left_alone() -> None:
    body = whole(REASONING, SEARCH, message("one two"))
    edit = Edit(max_tokens=2, finish="length", text=str)
    assert rewrite_body(body, edit, Change(edit)) is body


def test_text_is_the_text_of_the_first_part_and_annotations_go() -> None:
    noted = message("so ", "it is")
    noted["content"][0]["annotations"] = [{"type": "url_citation", "start_index": 0, "end_index": 2}]
    doc = after(response(REASONING, noted, CALL), Edit(text=str.upper))
    assert doc["output"] == [REASONING, message("SO IT IS", ""), CALL]


def test_a_message_is_put_in_where_there_was_no_text() -> None:
    doc = after(response(REASONING, CALL), Edit(text=lambda _: "new"))
    assert doc["output"] == [REASONING, message("new", item_id="msg_1"), CALL]
    assert after(response(REASONING), Edit(text=lambda _: "new"))["output"][1]["content"][0]["text"] == "new"


def test_annotations_that_point_behind_the_cut_go() -> None:
    noted = message("The weather in Paris")
    kept, gone = {"type": "url_citation", "end_index": 3}, {"type": "url_citation", "end_index": 12}
    noted["content"][0]["annotations"] = [kept, gone]
    assert after(response(noted), Edit(max_tokens=2))["output"][0]["content"][0]["annotations"] == [kept]


def test_tool_calls_are_left_out_but_not_those_of_openai() -> None:
    custom = {"id": "c", "type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "SELECT 1"}
    doc = after(response(REASONING, SEARCH, custom, CALL), Edit(drop_tool_calls=True))
    assert doc["output"] == [REASONING, SEARCH]


def test_how_it_ended_is_said_in_openai_s_words() -> None:
    doc = after(response(message("a")), Edit(finish="length"))
    assert (doc["status"], doc["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    again = after(doc, Edit(finish="stop"))
    assert (again["status"], again["incomplete_details"]) == ("completed", None)


@pytest.mark.parametrize("status", ["queued", "in_progress", "failed", "cancelled"])
def test_what_is_no_answer_is_left_alone(status: str) -> None:
    doc = response(message("one two"), status=status)
    assert after(doc, Edit(max_tokens=0, text=str.upper, drop_tool_calls=True, finish="length")) == doc
