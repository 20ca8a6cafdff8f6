import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.tape.fingerprint import Requests, fingerprints
from flakestorm.tape.tokens import Tokens
from replay_support import HEADERS, SPANS, chat, request

UUIDS = "0b8e8f52-6c3e-4c8e-9d43-7a5d0e1a2b3c", "11111111-6c3e-4c8e-9d43-7a5d0e1a2b3c"
FORM = (("content-type", "application/x-www-form-urlencoded"),)


def prints(body, **more):
    return fingerprints(request(body, **more), Requests(Tokens(SPANS)))


def test_each_is_coarser_than_the_one_before() -> None:
    one = prints(chat(f"book {UUIDS[0]}"))
    respelled = prints(json.dumps(chat(f"book {UUIDS[0]}"), indent=1).encode())
    other_id = prints(chat(f"book {UUIDS[1]}"))
    more = prints(chat(f"book {UUIDS[0]}", max_tokens=5))
    assert (one.raw == respelled.raw, one.canonical == respelled.canonical) == (False, True)
    assert (one.canonical == other_id.canonical, one.renamed == other_id.renamed) == (False, True)
    assert (one.renamed == more.renamed, one.skeleton == more.skeleton) == (False, True)
    assert one.skeleton != prints(chat("book another")).skeleton


def test_what_was_equal_stays_equal() -> None:
    a, b = UUIDS
    assert prints(chat(f"{a} {b}")).renamed == prints(chat(f"{b} {a}")).renamed
    assert prints(chat(f"{a} {a}")).renamed != prints(chat(f"{a} {b}")).renamed


def test_tool_arguments_may_be_spelled_otherwise() -> None:
    def call(arguments: str):
        return {"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}

    assert prints(call('{"a": 1, "b": 2}')).canonical == prints(call('{"b":2,"a":1.0}')).canonical
    assert prints(call('{"a": 1}')).canonical != prints(call('{"a": 2}')).canonical
    assert prints({"arguments": {"a": 1}}).canonical != prints({"arguments": '{"a": 1}'}).canonical


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "GET"},
        {"url": "https://api.openai.com/v2/chat/completions"},
        {"url": "https://elsewhere.test/v1/chat/completions"},
        {"url": "https://api.openai.com/v1/chat/completions?beta=1"},
        {"name": "gpt-4o-mini"},
        {"headers": (("Authorization", "[secret:ffffffff]"), *HEADERS[1:])},
        {"headers": HEADERS[1:]},
    ],
)
def test_what_is_hard(changes) -> None:
    assert prints(chat("hi")).renamed != prints(chat("hi"), **changes).renamed


def test_a_signed_request_is_told_by_what_it_asks() -> None:
    first = (("Authorization", "AWS4 a"), ("X-Amz-Date", "20240101T000000Z"))
    second = (("Authorization", "AWS4 b"), ("X-Amz-Date", "20250101T000000Z"))
    assert prints(chat("hi"), headers=first).canonical == prints(chat("hi"), headers=second).canonical


def test_other_bodies_than_json() -> None:
    assert prints(b"a=1&b=2", headers=FORM).canonical == prints(b"a=1&b=%32", headers=FORM).canonical
    assert prints(b"a=1&b=2", headers=FORM).canonical != prints(b"a=1&b=3", headers=FORM).canonical
    assert prints(b"\xff\x00").canonical != prints(b"\xff\x01").canonical
    assert prints(b"").canonical != prints(b"null").canonical
    assert prints(b"[1, 2]").canonical == prints(b"[1,2.0]").canonical

    def form(mark: str, value: str):
        body = f'--{mark}\r\nContent-Disposition: form-data; name="a"\r\n\r\n{value}\r\n--{mark}--\r\n'.encode()
        return prints(body, headers=(("content-type", f"multipart/form-data; boundary={mark}"),))

    assert form("xx", "1").canonical == form("yy", "1").canonical != form("yy", "2").canonical


def test_a_part_is_read_once_however_often_it_is_repeated() -> None:
    requests = Requests()
    first = requests.read(request(chat("one", "two")))
    second = requests.read(request(chat("one", "two", "three")))
    for (_, group), (_, other) in zip(first.parts, second.parts, strict=True):
        assert all(a is b for a, b in zip(group, other, strict=False))
    assert second.document() == chat("one", "two", "three")


def test_a_list_that_goes_on_is_read_on_and_one_that_does_not_is_read_anew() -> None:
    requests, alone = Requests(), chat("one", "two", "three")
    for turns in (("one",), ("one", "two"), ("one", "two", "three"), ("one", "2", "three"), ("one", "two", "three")):
        grown = requests.read(request(chat(*turns)))
        fresh = Requests().read(request(chat(*turns)))
        assert (grown.canonical, grown.renamed) == (fresh.canonical, fresh.renamed)
    again = requests.read(request(alone))
    assert dict(again.parts)["messages[]"] is dict(requests.read(request(alone)).parts)["messages[]"]
    longer = requests.read(request({"messages": [1, 23]}))
    assert longer.canonical != requests.read(request({"messages": [1, 2]})).canonical
    told = [requests.read(request({"messages": turns})).document() for turns in ([], [1], [1, [2, 3]], [])]
    assert told == [{"messages": []}, {"messages": [1]}, {"messages": [1, [2, 3]]}, {"messages": []}]


EDITS = (b"]", b"}", b'"', b", ", b"[]", b", 1", b'], "messages": [', b'], "x": [', b" ", b'], "mess\\u0061ges": [',
         b'{"role": "user", "content": "x"}', b'], "messages[]": [1], "a": [', "é".encode(), b"\\u00e9")  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 90), st.binary(max_size=2) | st.sampled_from(EDITS), st.booleans()),
        max_size=4,
    ),
    st.booleans(),
)
def test_what_is_read_on_is_what_is_read_anew(todo: list[tuple[int, int, bytes, bool]], literal: bool) -> None:
    more = {"messages[]": "a member of that name"} if literal else {}
    asked = [json.dumps(chat(*[f"turn {i} {'x' * 120}" for i in range(40 + n)], **more)).encode() for n in range(6)]
    for turn, back, new, stays in todo:
        for later in range(turn, len(asked) if stays else turn + 1):
            at = len(asked[turn]) - back
            asked[later] = asked[later][:at] + new + asked[later][at + back % 3 :]
    requests = Requests(Tokens(SPANS))
    for body in asked:
        grown, fresh = fingerprints(request(body), requests), prints(body)
        assert grown == fresh


def test_a_head_is_read_again_where_it_says_something_else() -> None:
    requests = Requests(Tokens(SPANS))
    one = request(chat("hello"))
    heads = [
        one,
        one._replace(headers=(*one.headers, ("anthropic-beta", "a"))),
        one._replace(url=f"{one.url}?a=1"),
        one,
    ]
    heads += [one._replace(headers=(*one.headers, ("x-request-id", str(number)))) for number in range(2)]
    for each in heads:
        known, anew = requests.read(each), Requests(Tokens(SPANS)).read(each)
        assert (known.canonical, known.renamed, known.hard) == (anew.canonical, anew.renamed, anew.hard)
