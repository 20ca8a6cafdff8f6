"""`agent.session`: the id that tells an HTTP agent which of its conversations a request belongs to.

Every run is a conversation of its own, so it gets an id of its own. Whatever a reply says under the same name replaces
it: many agents make the id themselves, and some make a new one when they are not pleased with what they got.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from flakestorm.agents.client import Response
from flakestorm.agents.reading import document_in
from flakestorm.agents.request import Request
from flakestorm.config.agents import Session
from flakestorm.core.call import Headers, header
from flakestorm.core.choices import entropy_uuid
from flakestorm.errors import ConfigError
from flakestorm.wire.encoding import decode_body

__all__ = ["SessionId", "check"]


def check(session: Session, sample: Request) -> None:
    """See that a session's id can be put where the config says.

    Args:
        session: the `agent.session` block.
        sample: a request as the template makes it.

    Raises:
        ConfigError: it cannot.
    """
    name = session.cookie or session.header or session.body or ""
    if any(sign in name for sign in "\r\n\0=;, ") and not session.body:
        raise ConfigError(f"{name!r} cannot be the name of a cookie or header", key="agent.session")
    if session.body and sample.body and _object(sample.body) is None:
        raise ConfigError(
            "the id goes into a JSON object, and the request is none; change request_template, or use a cookie or "
            "header",
            key="agent.session.body",
        )


class SessionId:
    """The id of one conversation.

    Args:
        session: where it is, and who makes it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked = False
        self._id: Any = entropy_uuid() if session.begins else None

    @property
    def missing(self) -> str:
        """What is wrong, where a further turn cannot be tied to those before it; else empty."""
        if self._id is not None or not self._asked:
            return ""
        session = self._session
        where = (
            f"set no cookie {session.cookie!r}"
            if session.cookie
            else f"has no header {session.header!r}"
            if session.header
            else f"has no text or number at {session.body!r}"
        )
        return f"the agent's first reply {where}, so the next turn cannot be tied to it; see agent.session"

    def put(self, request: Request) -> Request:
        """The request with the id, if there is one yet."""
        self._asked = True
        if self._id is None:
            return request
        session, text = self._session, self._id if isinstance(self._id, str) else json.dumps(self._id)
        if session.cookie:
            others = header(request.headers, "cookie")
            own = f"{session.cookie}={text}"
            return replace(request, headers=_with(request.headers, "Cookie", f"{others}; {own}" if others else own))
        if session.header:
            return replace(request, headers=_with(request.headers, session.header, text))
        name = session.body or ""
        data = _object(request.body)
        if data is None:  # its fields travel in the query
            return replace(request, params=(*(pair for pair in request.params if pair[0] != name), (name, text)))
        inner = data
        *parents, last = name.split(".")
        for step in parents:
            below = inner.get(step)
            inner[step] = below = below if isinstance(below, dict) else {}
            inner = below
        inner[last] = self._id
        return replace(request, body=json.dumps(data).encode())

    def take(self, response: Response) -> None:
        """Go on with the id that a reply brings."""
        session = self._session
        if session.cookie:
            self._id = _cookie(response.headers, session.cookie) or self._id
        elif session.header:
            self._id = header(response.headers, session.header) or self._id
        else:
            kind = header(response.headers, "content-type")
            found: Any = _object(decode_body(response.body, response.headers), kind)
            for step in (session.body or "").split("."):
                found = found.get(step) if isinstance(found, dict) else None
            if isinstance(found, (str, int)) and not isinstance(found, bool) and found != "":
                self._id = found


def _cookie(headers: Headers, name: str) -> str | None:
    """The value of a cookie that a reply sets; of several, the last."""
    set_ = [value.partition(";")[0] for key, value in headers if key.lower() == "set-cookie"]
    pairs = [(key.strip(), value.strip()) for key, _, value in (text.partition("=") for text in set_)]
    return next((value for key, value in reversed(pairs) if key == name and value), None)


def _with(headers: Headers, name: str, value: str) -> Headers:
    return (*((key, old) for key, old in headers if key.lower() != name.lower()), (name, value))


def _object(body: bytes, content_type: str | None = None) -> dict[str, Any] | None:
    try:
        found = document_in(body, content_type)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
