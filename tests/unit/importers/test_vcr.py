from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.call import header
from flakestorm.core.stream import read
from flakestorm.importers import vcr
from flakestorm.importers.vcr import crossings, recognises
from importers_support import ASKED, JSON, SAID, SSE, URL, cassette, request, response, said_json, said_sse


def one(asked: dict[str, Any] | None = None, said: dict[str, Any] | None = None) -> Any:
    [(call, reply)] = crossings(cassette((asked or request(), said or response())))
    return call, reply


def test_an_exchange_is_its_call_and_its_reply() -> None:
    call, reply = one()
    assert (call.method, call.url, call.kind) == ("POST", URL, "http")
    assert call.headers == reply.headers == (("content-type", "application/json"),)
    assert json.loads(call.body) == ASKED
    assert (reply.status, reply.reason, reply.streamed) == (200, "OK", False)
    assert json.loads(read(reply)) == SAID


def test_a_recorded_stream_comes_in_events() -> None:
    _, reply = one(said=response(headers=SSE, body={"string": said_sse()}))
    assert reply.streamed
    assert len(list(reply.body)) == 4
    assert read(reply) == said_sse().encode()


STORED = {
    "json serializer": response(body={"string": said_json()}),
    "yaml binary": response(body={"string": said_json().encode()}),
    "compressed": response(
        headers={**JSON, "content-encoding": ["gzip"]}, body={"string": gzip.compress(said_json().encode())}
    ),
    "base64, compressed": response(
        headers={**JSON, "Content-Encoding": ["gzip"]},
        body={"base64_string": b64encode(gzip.compress(said_json().encode())).decode(), "encoding": "utf-8"},
    ),
    "parsed": response(parsed_body=SAID, body=None),
    "httpx of vcrpy 4": response(content=said_json(), status_code=200, http_version="HTTP/1.1", status=None, body=None),
    "aiohttp": response(url=URL),
    "betamax": response(body={"string": said_json(), "encoding": "utf-8"}, url=URL),
}


@pytest.mark.parametrize("stored", STORED.values(), ids=STORED)
def test_every_recorder_s_reply_reads_the_same(stored: dict[str, Any]) -> None:
    _, reply = one(said=stored)
    assert (reply.status, json.loads(read(reply))) == (200, SAID)
    assert header(reply.headers, "content-encoding") is None


def test_interactions_are_found_under_either_name_and_before_vcrpy_1() -> None:
    pair = {"request": request(), "response": response(), "recorded_at": "2024-01-02T03:04:05"}
    for document in (
        {"interactions": [pair, pair]},
        {"http_interactions": [pair, pair], "recorded_with": "betamax/0.9.0"},
        {"interactions": [pair, pair], "version": 2, "metadata": {}},
        [pair, pair],
        {"requests": [request(), request()], "responses": [response(), response()]},
    ):
        assert recognises(document)
        assert len(crossings(document)) == 2


def test_requests_without_their_responses_are_refused() -> None:
    with pytest.raises(ValueError, match="it has 2 'requests' and 1 'responses': they must be pairs"):
        crossings({"requests": [request(), request()], "responses": [response()]})
    with pytest.raises(ValueError, match=r"exchanges\[0\] has no response"):
        crossings({"requests": [request()], "responses": [None]})
    with pytest.raises(ValueError, match="no list of 'interactions'"):
        crossings({"requests": {}, "responses": []})


def test_the_parts_of_an_old_url_are_put_together() -> None:
    parts = {"protocol": "http", "host": "api.test", "port": 80, "path": "/search?q=1", "uri": None}
    assert one(request(**parts))[0].url == "http://api.test/search?q=1"
    assert one(request(**{**parts, "port": 8080}))[0].url == "http://api.test:8080/search?q=1"
    assert one(request(**{**parts, "protocol": "https", "port": 443, "path": ""}))[0].url == "https://api.test/"


def test_old_header_lines_and_a_lower_case_method_are_understood() -> None:
    call, reply = one(request(method="get"), response(headers=["content-type: text/plain\r\n", "x: 1\r\n"]))
    assert call.method == "GET"
    assert reply.headers == (("content-type", "text/plain"), ("x", "1"))


def test_a_cassette_of_nothing_is_a_run_that_made_no_call() -> None:
    assert crossings({"interactions": [], "version": 1}) == crossings({"interactions": None}) == []


@pytest.mark.parametrize("document", [None, [], [1], {}, "text", 5, {"log": {"entries": []}}, [{"a": 1}]])
def test_other_documents_are_not_recognised(document: Any) -> None:
    assert not recognises(document)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"log": {}}, "it is not a VCR cassette: it has no list of 'interactions'"),
        ("text", "it is not a VCR cassette: it has no list of 'interactions'"),
        ({"interactions": {"a": 1}}, "it is not a VCR cassette: its 'interactions' is not a list"),
        ({"interactions": [1]}, "interactions[0] is not a pair of request and response"),
        ({"interactions": [{"request": request()}]}, "interactions[0] has no response"),
        ({"http_interactions": [{"response": response()}]}, "http_interactions[0] has no request"),
        (
            {"interactions": [{"kind": "message", "direction": "sent", "data": {}}]},
            "interactions[0] is a WebSocket message; only HTTP exchanges can be imported",
        ),
        (cassette((request(uri=None), response())), "interactions[0].request.uri: it must be the URL"),
        (cassette((request(uri=5), response())), "interactions[0].request.uri: it must be the URL"),
        (cassette((request(method=None), response())), "interactions[0].request.method: it must be an HTTP method"),
        (cassette((request(method="GET / HTTP/1.1\r\n"), response())), "request.method: it must be an HTTP method"),
        (cassette((request(headers="a: 1"), response())), "request.headers: it must be a mapping or a list"),
        (cassette((request(body=5), response())), "request.body: it must be text"),
        (cassette((request(), response(status=None))), "interactions[0].response.status: it must be an HTTP status"),
        (cassette((request(), response(status={"code": "abc"}))), "response.status: it must be an HTTP status"),
        (cassette((request(), response(status={"code": True}))), "response.status: it must be an HTTP status"),
        (cassette((request(), response(status=99))), "response.status: it must be an HTTP status"),
        (
            cassette((request(), response()), (request(), response(body={"base64_string": "%"}))),
            "interactions[1].response.body: its base64_string is not base64",
        ),
    ],
)
def test_what_is_no_exchange_is_refused_and_its_place_is_told(document: Any, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        crossings(document)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("status", [{"code": 429, "message": "Too Many Requests"}, {"code": "429"}, 429, "429"])
def test_every_way_to_write_a_status_is_read(status: Any) -> None:
    assert one(said=response(status=status))[1].status == 429


def test_bodies_that_unpack_to_too_much_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = response(headers={"content-encoding": "gzip"}, body={"string": gzip.compress(bytes(2**20))})
    document = cassette(*[(request(), packed)] * 4)
    assert len(crossings(document)) == 4
    monkeypatch.setattr(vcr, "MAX_BODY_BYTES", 3 * 2**20)
    with pytest.raises(ValueError, match=r"interactions\[2\]: the bodies up to here unpack to more than 3 MB"):
        crossings(document)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 600) | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["string", "base64_string", "code", "encoding", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)
parts = st.sampled_from(["method", "uri", "headers", "body", "parsed_body", "status", "content", "host", "port"])


@given(asked=st.dictionaries(parts, anything), said=st.dictionaries(parts, anything))
def test_any_exchange_is_read_or_refused(asked: dict[str, Any], said: dict[str, Any]) -> None:
    pairs = [(request(**asked), response(**said)), (request(**asked), response()), (request(), response(**said))]
    for pair in pairs:
        try:
            [(call, reply)] = crossings(cassette(pair))
        except ValueError:
            continue
        assert isinstance(call.body, bytes)
        assert isinstance(read(reply), bytes)
