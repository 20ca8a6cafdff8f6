"""A reply becomes an output: `response_path`, the usual keys, and the agent's own word that it failed.

The agent decides what a reply looks like, so everything here treats it as hostile: it may be cut short, nested beyond
reason, or hold half surrogate pairs.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from flakestorm.core.answer import AgentError
from flakestorm.core.regex import later
from flakestorm.errors import ConfigError

__all__ = [
    "USUAL_KEYS",
    "ResponsePath",
    "charset_in",
    "document_in",
    "excerpt",
    "read_body",
    "read_value",
    "render",
    "text_in",
]

USUAL_KEYS = ("output", "result", "response", "answer", "text", "content", "message")
"""Where an output is looked for, in this order, when there is no `response_path`."""

_CHARSET = later(r""";\s*charset\s*=\s*(?:"([^"]*)"|([^\s;"]+))""", re.IGNORECASE)
_NO_CHARSETS = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined")
_LOOKED_AT = 2000
"""How much of a text is looked at for a message."""

_STEP = later(r"""\.?([^.\[\]]+)|\[(-?\d+)\]|\['([^']*)'\]|\["([^"]*)"\]""")


class ResponsePath:
    """A dotted path into a reply: `choices.0.message.content`, `$.data.result`, `rows[-1]['full name']`.

    `$` alone is the whole reply.

    Raises:
        ConfigError: the text is not a path.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        rest = text.strip().removeprefix("$")
        steps: list[str] = []
        at = 0
        while at < len(rest):
            found = _STEP.match(rest, at)
            if found is None:
                raise ConfigError(
                    f"{text!r} is not a path; write names and list indexes with dots between them, "
                    "for example choices.0.message.content, or $ for the whole reply",
                    key="agent.response_path",
                )
            steps.append(next(group for group in found.groups() if group is not None))
            at = found.end()
        self.steps = tuple(steps)

    @property
    def whole(self) -> bool:
        """Whether it means the whole reply."""
        return not self.steps

    def follow(self, data: Any) -> Any:
        """The value at the path.

        Raises:
            LookupError: there is none; the message says how far the path led and what is there instead.
        """
        for depth, step in enumerate(self.steps):
            if isinstance(data, dict) and step in data:
                data = data[step]
            elif isinstance(data, list) and re.fullmatch(r"-?\d{1,9}", step) and -len(data) <= int(step) < len(data):
                data = data[int(step)]
            else:
                parent = ".".join(self.steps[:depth])
                where = f"{parent!r}" if parent else "the reply"
                raise LookupError(f"response_path {self.text!r} leads nowhere: no {step!r} in {where}, {_shape(data)}")
        return data


def read_body(body: bytes, path: ResponsePath | None, content_type: str | None = None) -> str | AgentError:
    """The output in a reply's body, or why there is none.

    The body must be JSON; only the path `$` takes one that is not, as text.

    Args:
        body: without its content encoding.
        path: `response_path`, if there is one.
        content_type: of the reply; its charset counts where the body is not in UTF-8 (see `text_in`).
    """
    try:
        data = document_in(body, content_type)
    except (ValueError, RecursionError) as error:
        if path is not None and path.whole:
            return _clean(text_in(body, content_type))
        if not body.strip():
            return AgentError("unreadable", "the reply is empty")
        said = excerpt(text_in(body, content_type)[:_LOOKED_AT])
        odd = _why_no_text(content_type) if isinstance(error, UnicodeDecodeError) else ""
        return AgentError(
            "unreadable",
            f"the reply is not JSON: {said}{odd} (response_path: $ would take the whole reply as the output)",
        )
    return read_value(data, path)


def text_in(body: bytes, content_type: str | None) -> str:
    """A body as text: UTF-8 where it is that, else in the charset that its content type names, where it is that.

    In this order, because servers that write UTF-8 name other charsets more often than text in those happens to be
    valid UTF-8. What is neither is UTF-8 with errors replaced.
    """
    try:
        return _decoded(body, content_type)
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace")


def _decoded(body: bytes, content_type: str | None) -> str:
    """As `text_in`, without a last resort.

    Raises:
        UnicodeDecodeError: it is neither.
    """
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        charset = charset_in(content_type)
        if not _known(charset):
            raise
        return body.decode(charset)


def _why_no_text(content_type: str | None) -> str:
    charset = charset_in(content_type)
    if not charset or charset.lower() in ("utf-8", "utf8"):
        return ", which is no UTF-8; an agent that writes another charset names it in its Content-Type"
    return (
        f", which is neither UTF-8 nor in its charset {charset[:40]!r}{'' if _known(charset) else ', which is unknown'}"
    )


def charset_in(content_type: str | None) -> str:
    """The charset that a content type names, or an empty text."""
    found = _CHARSET.search(content_type or "")
    return found[1] or found[2] if found else ""


def _known(charset: str) -> bool:
    """Whether it is a charset; Python's codecs do other things too, some of them slowly."""
    try:
        if not charset or codecs.lookup(charset).name in _NO_CHARSETS:
            return False
        b"a".decode(charset)
    except UnicodeDecodeError:  # it wants more than one byte
        return True
    except (LookupError, ValueError):  # ValueError: a name with U+0000
        return False
    return True


def document_in(body: bytes, content_type: str | None) -> Any:
    """The JSON of a body: in UTF-8, UTF-16 or UTF-32, as JSON tells by itself, else in the charset that is named.

    Raises:
        ValueError, RecursionError: it is none.
    """
    try:
        return json.loads(body)
    except UnicodeDecodeError:
        return json.loads(_decoded(body, content_type))


def read_value(data: Any, path: ResponsePath | None) -> str | AgentError:
    """The output in a decoded reply, or why there is none.

    An agent says that it failed by a non-empty `error` (or `success: false`) beside no output; `"error": null` is a
    success. A key that holds null is an empty output; so is an empty string, unless an error stands beside it.
    """
    failure = _failure(data)
    if path is not None:
        try:
            found = path.follow(data)
        except LookupError as missing:
            return failure or AgentError("unreadable", str(missing))
        return failure if failure and found in (None, "") else render(found)
    if isinstance(data, dict):
        found = _usual(data, failed=failure is not None)
        if found is not None:
            return render(data[found])
    elif not isinstance(data, list):
        return render(data)
    return failure or AgentError(
        "unreadable",
        f"none of the usual keys ({', '.join(USUAL_KEYS)}) is in the reply, {_shape(data)}; set agent.response_path",
    )


def _usual(data: dict[str, Any], *, failed: bool) -> str | None:
    """The usual key that holds the output: the first that is not null, else the first."""
    keys = [key for key in USUAL_KEYS if key in data]
    if failed:  # a message beside an error explains the error
        keys = [key for key in keys if key != "message" and data[key] not in (None, "")]
    return next((key for key in keys if data[key] is not None), keys[0] if keys else None)


def render(value: Any) -> str:
    """A value as output text: strings as they are, null as nothing, everything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, (dict, list, tuple, bool, int, float)):
        try:
            return _clean(json.dumps(value, ensure_ascii=False, default=str))
        except (ValueError, TypeError, RecursionError):  # cycles, keys that JSON has no word for
            pass
    return _clean(str(value))


def excerpt(body: bytes | str, limit: int = 200) -> str:
    """The beginning of a text in quotes, on one line, for messages."""
    text = body[: 4 * limit].decode("utf-8", "replace") if isinstance(body, bytes) else body
    text = " ".join(text.split())
    return f'"{_clean(text[:limit])}{"…" if len(text) > limit else ""}"'


def _failure(data: Any) -> AgentError | None:
    if not isinstance(data, dict):
        return None
    said = data.get("error") or data.get("Error")
    if not said and data.get("success") is not False:
        return None
    if not said or said is True:
        said = data.get("message") or data.get("detail") or "it did not say why"
    if isinstance(said, dict) and isinstance(said.get("message"), str):
        said = said["message"]
    return AgentError("error", f"the agent reported an error: {excerpt(render(said), 500)}")


def _shape(data: Any) -> str:
    if isinstance(data, dict):
        names = [str(key)[:60] for key in list(data)[:20]]
        more = ", …" if len(data) > len(names) else ""
        return f"which has the keys {', '.join(names)}{more}" if names else "which is an empty object"
    if isinstance(data, list):
        return f"which is a list of {len(data)}"
    return f"which is {excerpt(render(data), 60)}"


def _clean(text: str) -> str:
    """Half a surrogate pair can be written in JSON but not in UTF-8, which everything after this needs."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text
