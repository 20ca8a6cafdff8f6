import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.mutations.base import REQUEST_TYPES
from flakestorm.mutations.outgoing import BODY_LIMIT_BYTES, Outgoing
from mutations_support import mutations

BEFORE = Outgoing("POST", "http://agent/ask", headers=(("Content-Type", "application/json"),), body=b'{"input": "hi"}')


def changed(kind: str, count: int = 6, before: Outgoing = BEFORE) -> list[Outgoing]:
    return [m.change(before) for m in mutations(kind, "hi", count=count) if m.change]


@pytest.mark.parametrize("kind", REQUEST_TYPES)
def test_at_six_there_are_at_least_three_variants_and_none_is_the_plain_request(kind) -> None:
    found = changed(kind)
    assert len(found) == 6
    assert len({repr(one) for one in found}) == 6
    assert BEFORE not in found
    assert all(one.url == BEFORE.url for one in found)


@pytest.mark.parametrize("kind", REQUEST_TYPES)
@given(body=st.one_of(st.binary(max_size=200), st.sampled_from([b"", b"{}", b"[]", b'{"a": [1]}'])), seed=st.integers())
def test_any_body_will_do(kind, body, seed) -> None:
    for mutation in mutations(kind, "hi", count=8, seed=seed):
        assert mutation.change is not None
        made = mutation.change(Outgoing("POST", "http://agent/", body=body))
        assert len(made.body) <= BODY_LIMIT_BYTES
        assert made == mutation.change(Outgoing("POST", "http://agent/", body=body))


def test_there_are_eighty_headers_at_least_once() -> None:
    assert max(len(one.headers) for one in changed("http_header_injection")) >= 80


def test_no_header_has_a_line_break() -> None:
    for one in changed("http_header_injection", 60):
        assert not any(control in name + value for name, value in one.headers for control in "\r\n\0")


def test_the_body_travels_in_the_query() -> None:
    moved = [one for one in changed("request_method_attack", 40) if not one.body]
    assert moved
    assert all(dict(one.params) == json.loads(BEFORE.body) for one in moved)
