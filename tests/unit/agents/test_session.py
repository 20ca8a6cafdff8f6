import json
from typing import Any

import pytest

from flakestorm.agents.client import Response
from flakestorm.agents.request import Request
from flakestorm.agents.session import SessionId, check
from flakestorm.config.agents import Session
from flakestorm.core.call import header
from flakestorm.errors import ConfigError

ASKED = Request("POST", "http://agent/", headers=(("Cookie", "a=1"),), body=b'{"input": "hi"}')


def reply(body: Any = None, *headers: tuple[str, str]) -> Response:
    return Response(200, "OK", headers, json.dumps(body).encode(), whole=True)


def begun(**said: Any) -> SessionId:
    return SessionId(Session(**said))


def test_ids_are_made_anew_for_every_conversation() -> None:
    first, second = (begun(header="X-Session").put(ASKED) for _ in range(2))
    assert header(first.headers, "x-session") != header(second.headers, "x-session")


def test_an_id_goes_into_the_body_at_its_path() -> None:
    session = begun(body="meta.thread", made_by="agent")
    assert session.put(ASKED) is ASKED
    session.take(reply({"output": "hi", "meta": {"thread": 7}}))
    assert json.loads(session.put(ASKED).body) == {"input": "hi", "meta": {"thread": 7}}


def test_an_id_is_found_in_a_reply_of_another_charset() -> None:
    session = begun(body="thread", made_by="agent")
    body = '{"output": "caf\u00e9", "thread": "\u00e9t\u00e9"}'.encode("latin-1")
    session.take(Response(200, "OK", (("Content-Type", "application/json; charset=ISO-8859-1"),), body, whole=True))
    assert json.loads(session.put(ASKED).body) == {"input": "hi", "thread": "\u00e9t\u00e9"}


def test_an_id_goes_into_the_query_where_fields_do() -> None:
    session = begun(body="thread")
    params = dict(session.put(Request("GET", "http://agent/", params=(("input", "hi"),))).params)
    assert params.keys() == {"input", "thread"}


def test_a_cookie_joins_those_there_are() -> None:
    session = begun(cookie="sid")
    assert session.put(ASKED) is ASKED
    session.take(reply(None, ("Set-Cookie", "other=x"), ("set-cookie", "sid=abc; Path=/; HttpOnly")))
    assert header(session.put(ASKED).headers, "cookie") == "a=1; sid=abc"


@pytest.mark.parametrize("said", [{"cookie": "sid"}, {"header": "X-S", "made_by": "agent"}])
def test_an_id_that_does_not_come_is_missed_at_the_next_turn(said: dict[str, Any]) -> None:
    session = begun(**said)
    assert not session.missing
    session.put(ASKED)
    session.take(reply({"thread": True}))
    assert "cannot be tied" in session.missing


@pytest.mark.parametrize("body", [None, [], "text", {"meta": []}, {"meta": {"thread": None}}, {"meta": {"thread": {}}}])
def test_a_reply_without_an_id_leaves_the_one_there_is(body: Any) -> None:
    session = begun(body="meta.thread")
    before = session.put(ASKED)
    session.take(reply(body))
    assert session.put(ASKED) == before


def test_a_place_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="JSON object"):
        check(Session(body="id"), Request("POST", "http://agent/", body=b"plain"))
    with pytest.raises(ConfigError, match="name"):
        check(Session(header="X\r\nY"), ASKED)
    with pytest.raises(ValueError, match="where the id is"):
        Session(header="X", body="y")
