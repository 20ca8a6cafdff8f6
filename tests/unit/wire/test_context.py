"""Text added to model requests: at its place in every dialect, and not a byte changed elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.wire.context import Addition, Conversation, Strategy, added, conversation

NEW = 'new è "words"\n'
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}

TALKS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "a flight"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "3 flights"},
        ],
        "temperature": 0.10,
    },
    "openai_responses": {
        "model": "m",
        "instructions": "be kind",
        "input": [
            {"role": "user", "content": "a flight"},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA=", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "3 flights"},
        ],
    },
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "system": "be kind",
        "messages": [
            {"role": "user", "content": "a flight"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "Ab+/="},
                    {"type": "tool_use", "id": "c1", "name": "search", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3 flights"}]},
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "a flight"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {}}, "thoughtSignature": "Cg=="}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"result": "3 flights"}}}]},
        ],
    },
    "ollama": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "a flight"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "search", "arguments": {}}}]},
            {"role": "tool", "content": "3 flights", "tool_name": "search"},
        ],
    },
}
LIST = {"openai_responses": "input", "gemini": "contents"}


def listed(wire: str, talk: dict[str, Any]) -> list[Any]:
    return talk[LIST.get(wire, "messages")]


def opening(wire: str) -> dict[str, Any]:
    """The first request of the talk: up to the user's message."""
    whole = TALKS[wire]
    until = next(i for i, m in enumerate(listed(wire, whole)) if m.get("role") == "user") + 1
    return {**whole, LIST.get(wire, "messages"): listed(wire, whole)[:until]}


def read(wire: str, talk: dict[str, Any]) -> Conversation:
    found = conversation(wire, json.dumps(talk).encode())
    assert found is not None
    return found


def spoken(wire: str, talk: dict[str, Any]) -> list[str]:
    """What each message says, all texts of it."""

    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [t for k, v in value.items() if k not in ("role", "type", "id", "name") for t in texts(v)]
        return [t for v in value for t in texts(v)] if isinstance(value, list) else [value] if value else []

    return [" | ".join(str(t) for t in texts(message)) for message in listed(wire, talk)]


@pytest.mark.parametrize("wire", TALKS)
def test_the_user_the_tools_and_the_developer_are_read(wire: str) -> None:
    talk = read(wire, TALKS[wire])
    assert [message.role for message in talk.messages] == ["user", "tool"]
    assert (talk.messages[0].text, talk.system, talk.resumed) == ("a flight", "be kind", False)
    assert talk.newest is talk.messages[1]
    assert len(talk.marks) == 2


@pytest.mark.parametrize("wire", TALKS)
def test_later_requests_know_the_same_messages(wire: str) -> None:
    first, later = read(wire, opening(wire)), read(wire, TALKS[wire])
    assert first.newest is not None
    assert first.newest.key == later.messages[0].key
    assert first.marks == later.marks


@pytest.mark.parametrize("wire", TALKS)
@pytest.mark.parametrize(
    ("strategy", "form"), [("append", "a flight\n\n{}"), ("prepend", "{}\n\na flight"), ("replace", "{}")]
)
@pytest.mark.parametrize("talk", ["first", "later"])
def test_text_joins_the_user_s_message(wire: str, strategy: Strategy, form: str, talk: str) -> None:
    body = opening(wire) if talk == "first" else TALKS[wire]
    at = read(wire, body).messages[0].key
    after = json.loads(added(wire, json.dumps(body).encode(), [Addition(NEW, at, strategy)]))
    index = next(i for i, m in enumerate(listed(wire, body)) if m.get("role") == "user")
    message = listed(wire, after)[index]
    if wire == "gemini":
        assert "\n\n".join(part["text"] for part in message["parts"]) == form.format(NEW)
    else:
        assert message["content"] == form.format(NEW)
    del listed(wire, after)[index], (copy := json.loads(json.dumps(body)))[LIST.get(wire, "messages")][index]
    assert after == copy


@pytest.mark.parametrize("wire", TALKS)
@pytest.mark.parametrize("strategy", ["append", "prepend", "replace"])
def test_behind_tool_results_it_is_a_message_of_the_user(wire: str, strategy: Strategy) -> None:
    body = json.dumps(TALKS[wire]).encode()
    at = read(wire, TALKS[wire]).messages[-1].key
    after = added(wire, body, [Addition(NEW, at, strategy)])
    message = {"role": "user", "parts": [{"text": NEW}]} if wire == "gemini" else {"role": "user", "content": NEW}
    assert listed(wire, json.loads(after)) == [*listed(wire, TALKS[wire]), message]
    grown = {**TALKS[wire], LIST.get(wire, "messages"): [*listed(wire, TALKS[wire]), {"role": "assistant"}]}
    again = json.loads(added(wire, json.dumps(grown).encode(), [Addition(NEW, at, strategy)]))
    assert listed(wire, again)[-2:] == [message, {"role": "assistant"}], "in the same place ever after"


@pytest.mark.parametrize("wire", TALKS)
@pytest.mark.parametrize(
    ("strategy", "form"), [("append", "be kind\n\n{}"), ("prepend", "{}\n\nbe kind"), ("replace", "{}")]
)
def test_text_joins_the_system_prompt(wire: str, strategy: Strategy, form: str) -> None:
    after = json.loads(added(wire, json.dumps(TALKS[wire]).encode(), [Addition(NEW, None, strategy)]))
    assert read(wire, after).system == form.format(NEW)
    assert read(wire, after).messages == read(wire, TALKS[wire]).messages


@pytest.mark.parametrize("wire", TALKS)
def test_a_system_prompt_is_made_where_there_is_none(wire: str) -> None:
    body = {k: v for k, v in TALKS[wire].items() if k not in ("system", "instructions", "systemInstruction")}
    body[LIST.get(wire, "messages")] = [m for m in listed(wire, body) if m.get("role") != "system"]
    after = json.loads(added(wire, json.dumps(body).encode(), [Addition(NEW)]))
    assert read(wire, after).system == NEW
    assert [m for m in listed(wire, after) if m.get("role") != "system"] == listed(wire, body)


@pytest.mark.parametrize("wire", TALKS)
@pytest.mark.parametrize("style", [{}, {"separators": (",", ":")}, {"indent": 2}])
def test_every_other_byte_stays(wire: str, style: dict[str, Any]) -> None:
    body = json.dumps(TALKS[wire], **style).encode()
    talk = read(wire, TALKS[wire])
    for addition in (Addition(NEW, talk.messages[0].key), Addition(NEW, talk.messages[1].key), Addition(NEW)):
        after = added(wire, body, [addition])
        left = next(i for i, (a, b) in enumerate(zip(body, after, strict=False)) if a != b)
        rest = len(body) - left
        kept = next(i for i in range(rest, -1, -1) if after.endswith(body[len(body) - i :]))
        assert len(body) - left - kept <= 1, "nothing went but at most a quotation mark that moved"


def test_several_additions_join_in_the_order_given() -> None:
    body = json.dumps(TALKS["openai_chat"]).encode()
    at = read("openai_chat", TALKS["openai_chat"]).messages[0].key
    several = [Addition("1", at), Addition("2", at, "prepend"), Addition("3", at), Addition("S"), Addition("T")]
    messages = json.loads(added("openai_chat", body, several))["messages"]
    assert messages[1]["content"] == "2\n\na flight\n\n1\n\n3"
    assert messages[0]["content"] == "be kind\n\nS\n\nT"


PARTS = [{"type": "text", "text": "a flight", "cache_control": {"type": "ephemeral"}}, {"type": "image", "source": {}}]


@pytest.mark.parametrize(
    ("additions", "texts"),
    [
        ([("append", "A")], ["a flight", "image", "A"]),
        ([("prepend", "P")], ["P", "a flight", "image"]),
        ([("replace", "R")], ["R", "image"]),
        ([("prepend", "P"), ("append", "A"), ("prepend", "Q")], ["Q", "P", "a flight", "image", "A"]),
        ([("prepend", "gone"), ("replace", "R"), ("append", "A"), ("prepend", "P")], ["P", "R", "image", "A"]),
    ],
)
def test_a_list_of_parts_gets_parts(additions: list[tuple[Strategy, str]], texts: list[str]) -> None:
    talk = {"model": "m", "messages": [{"role": "user", "content": PARTS}]}
    at = read("anthropic", talk).messages[0].key
    new = [Addition(text, at, strategy) for strategy, text in additions]
    for style in ({}, {"indent": 1}):
        after = json.loads(added("anthropic", json.dumps(talk, **style).encode(), new))  # type: ignore[arg-type]
        content = after["messages"][0]["content"]
        assert [part.get("text", part["type"]) for part in content] == texts
        assert [part for part in content if part in PARTS] == [p for p in PARTS if p.get("text", "image") in texts]


def test_a_message_is_the_same_as_a_string_and_as_a_part_and_wherever_cache_marks_move() -> None:
    as_text = read("anthropic", {"messages": [{"role": "user", "content": "a flight"}]})
    as_part = read("anthropic", {"messages": [{"role": "user", "content": PARTS[:1]}]})
    assert as_text.messages == as_part.messages


def test_equal_messages_are_told_apart_by_their_order() -> None:
    said = [
        {"role": "user", "content": "yes"},
        {"role": "assistant", "content": "so?"},
        {"role": "user", "content": "yes"},
    ]
    talk = {"messages": said}
    one, two = read("openai_chat", talk).messages
    assert one.key != two.key
    after = json.loads(added("openai_chat", json.dumps(talk).encode(), [Addition("!", two.key)]))
    assert [message["content"] for message in after["messages"]] == ["yes", "so?", "yes\n\n!"]


@pytest.mark.parametrize(
    ("wire", "talk", "member"),
    [
        ("openai_responses", {"model": "m", "input": "a flight"}, "input"),
        ("ollama", {"model": "m", "prompt": "a flight"}, "prompt"),
        ("gemini", {"contents": "a flight"}, "contents"),
    ],
)
def test_a_request_that_is_one_string_is_the_user_s(wire: str, talk: dict[str, Any], member: str) -> None:
    at = read(wire, talk).messages[0].key
    after = json.loads(added(wire, json.dumps(talk).encode(), [Addition("!", at)]))
    assert after == {**talk, member: "a flight\n\n!"}


def test_gemini_takes_one_content_and_snake_case() -> None:
    talk = {"system_instruction": {"parts": [{"text": "be kind"}]}, "contents": {"parts": [{"text": "a flight"}]}}
    found = read("gemini", talk)
    assert found.newest is not None
    new = [Addition("!", found.newest.key), Addition("?")]
    after = json.loads(added("gemini", json.dumps(talk).encode(), new))
    assert after["contents"]["parts"] == [{"text": "a flight"}, {"text": "!"}]
    assert after["system_instruction"]["parts"] == [{"text": "be kind"}, {"text": "?"}]


def test_a_resumed_conversation_says_so() -> None:
    talk = {"model": "m", "previous_response_id": "resp_1", "input": [{"type": "function_call_output", "call_id": "c"}]}
    assert read("openai_responses", talk).resumed
    assert read("openai_responses", talk).marks == frozenset()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b'{"messages": 3}', b'{"messages": [3, null, {}]}'])
@pytest.mark.parametrize("wire", [*TALKS, "bedrock", ""])
def test_what_cannot_be_read_is_left_alone(wire: str, body: bytes) -> None:
    found = conversation(wire, body)
    assert found is None or found.messages == ()
    assert added(wire, body, [Addition("!", ("user", "x", 1))]) == body


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant", "system", "tool", "model"]) | JSON,
            "content": st.text(max_size=5) | st.lists(st.just({"type": "text", "text": "x"}) | JSON, max_size=3) | JSON,
            "parts": st.lists(st.just({"text": "x"}) | JSON, max_size=3) | JSON,
            "type": st.sampled_from(["message", "function_call_output"]) | JSON,
        },
    )
    | JSON,
    max_size=5,
)


@given(
    wire=st.sampled_from([*TALKS]),
    messages=MESSAGES,
    system=JSON,
    style=st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}]),
    strategies=st.lists(st.sampled_from(["append", "prepend", "replace"]), min_size=1, max_size=3),
    data=st.data(),
)
def test_hostile_requests_stay_json_and_what_is_not_addressed_stays_as_it_was(
    wire: str, messages: Any, system: Any, style: Any, strategies: list[Strategy], data: st.DataObject
) -> None:
    names = {"openai_responses": "instructions", "gemini": "systemInstruction"}
    talk = {"model": "m", LIST.get(wire, "messages"): messages, names.get(wire, "system"): system}
    body = json.dumps(talk, **style).encode()
    found = conversation(wire, body)
    assert found is not None
    keys = [message.key for message in found.messages]
    new = [Addition("N", data.draw(st.sampled_from([*keys, None])), strategy) for strategy in strategies]
    after = json.loads(added(wire, body, new))
    assert after["model"] == "m"
    touched = {m.index for m in found.messages for one in new if one.at == m.key and m.role == "user"}
    if any(one.at is None for one in new):  # the system prompt, which may be the first such message
        touched |= {i for i, m in enumerate(messages) if isinstance(m, dict) and m.get("role") == "system"}
    standing = iter(listed(wire, after))
    for index, message in enumerate(messages):
        assert index in touched or message in standing, "the others are all there, in their order"
    if all(one.at is not None for one in new):
        assert after[names.get(wire, "system")] == system
