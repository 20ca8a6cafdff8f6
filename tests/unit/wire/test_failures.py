import pytest

from flakestorm.core.call import Call, header
from flakestorm.core.site import Site
from flakestorm.wire.failures import error_reply, request_token, retry_headers


@pytest.mark.parametrize(
    ("wait_ms", "expected"),
    [
        (None, ()),
        (50, (("retry-after-ms", "50"), ("retry-after", "1"))),
        (1000, (("retry-after-ms", "1000"), ("retry-after", "1"))),
        (1001, (("retry-after-ms", "1001"), ("retry-after", "2"))),
        (0, (("retry-after-ms", "0"), ("retry-after", "0"))),
    ],
)
def test_whole_seconds_are_rounded_up(wait_ms: int | None, expected: tuple[tuple[str, str], ...]) -> None:
    assert retry_headers(wait_ms) == expected


def test_an_error_reply_is_whole_json() -> None:
    reply = error_reply(429, {"error": "é"}, ("x-request-id", "r"))
    assert (reply.status, reply.body, reply.reason) == (429, '{"error":"é"}'.encode(), "Too Many Requests")
    assert header(reply.headers, "content-length") == str(len('{"error":"é"}'.encode()))
    assert header(reply.headers, "content-type") == "application/json"
    assert header(reply.headers, "x-request-id") == "r"
    assert not reply.streamed


def test_a_status_nobody_registered_has_no_phrase() -> None:
    assert error_reply(529, {}).reason == ""


def test_a_request_id_belongs_to_the_call_and_its_site() -> None:
    call = Call("POST", "https://a.test/", body=b"x", site=Site("llm", "m", 1))
    again = Call("POST", "https://a.test/", body=b"x", site=Site("llm", "m", 2))
    assert request_token(call) == request_token(call) != request_token(again)
    assert len(request_token(call)) == 32
