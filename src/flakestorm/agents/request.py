"""An input becomes a request: rendering `agent.request_template`.

A template is read once, when the agent is made. One that is a JSON document stays one whatever the input holds: a
placeholder inside a string literal is filled with escaped text, one that stands where a value belongs becomes a value
(`{prompt}` a string; a `{key}` keeps being a number or a boolean if it looks like one, and is null if the input has no
such line). Any other template, and one that is nothing but a placeholder, is plain text and filled as it is; but one
that begins like JSON and is none is refused, because it is a slip.

Placeholders are filled in one pass, so text that arrives with an input is never itself taken for a placeholder. One
without a value stays as it was written (`placeholders` refuses inputs that leave out what others fill); a template that
takes nothing of an input is refused, because an agent that is asked the same whatever the input is has passed nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from flakestorm.config.model import Agent
from flakestorm.core.call import Headers, header
from flakestorm.core.record import Record
from flakestorm.core.regex import later
from flakestorm.core.registry import nearest
from flakestorm.errors import ConfigError

if TYPE_CHECKING:
    from flakestorm.mutations.outgoing import Delivery, Outgoing

__all__ = ["Request", "RequestTemplate", "named_in_text", "normal", "parse_structured_input"]

_PLACEHOLDER = later(r"\{([\w.-]+)\}")
_STRING_OR_PLACEHOLDER = later(r'"(?:[^"\\]|\\.)*"|\{([\w.-]+)\}', re.DOTALL)
_SCALAR = later(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_LIKE_JSON = later(r'\s*(?:\{\s*"|\[\s*["\[{])')
_IN_QUERY = ("GET", "DELETE")


class Request(Record, frozen=True):
    """What is sent to the agent for one input.

    Args:
        method, url: as configured; `{port}` in the URL is still to be filled in.
        params: query parameters, added to those the URL has.
        headers: as configured, with a content type where there is a body.
        body: empty for methods whose fields travel in the query.
        delivery: how it is sent, where a mutation says so. Such a request is never tried again.
    """

    method: str
    url: str
    params: tuple[tuple[str, str], ...] = ()
    headers: Headers = ()
    body: bytes = b""
    delivery: Delivery | None = None

    def changed(self, change: Callable[[Outgoing], Outgoing]) -> Request:
        """The request as a mutation wants it."""
        from flakestorm.mutations.outgoing import Outgoing  # only for mutations of the request

        made = change(Outgoing(self.method, self.url, self.params, self.headers, self.body))
        return Request(made.method, made.url, made.params, made.headers, made.body, made.delivery)


class RequestTemplate:
    """Makes the request for an input.

    With a template, JSON or text, the rendered body is sent; without one, `{"input": PROMPT}`. GET and DELETE carry the
    fields of a JSON object as query parameters instead (values that are not strings as JSON), and plain text as `q`.
    Plain text going into a form (`Content-Type: application/x-www-form-urlencoded` among the configured headers) is
    percent-encoded where it is filled in.

    Args:
        agent: the `agent` block of the config.

    Raises:
        ConfigError: `request_template` begins like JSON and is none, or has no place for an input.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._template = agent.request_template
        self._json = self._template is None or _is_json(self._template)
        if self._template is not None and not self._json and _LIKE_JSON.match(self._template):
            raise ConfigError(_why_not_json(self._template), key="agent.request_template")
        self._names = None if self._template is None else _PLACEHOLDER.findall(self._template)
        if (
            self._names is not None
            and "prompt" not in self._names
            and not (self._names and agent.parse_structured_input)
        ):
            why = "it holds no {prompt}, so no input would reach the agent; put it where the input belongs"
            raise ConfigError(f"{why}{_meant(self._names)}", key="agent.request_template")
        content_type = header(tuple(agent.headers.items()), "content-type") or ""
        self._form = content_type.lower().startswith("application/x-www-form-urlencoded")

    def render(self, prompt: str) -> Request:
        """The request for this input."""
        agent = self._agent
        fields = parse_structured_input(prompt) if agent.parse_structured_input else {}
        text = self._text(prompt, fields)
        params = tuple(agent.query_params.items())
        headers = tuple(agent.headers.items())
        if agent.method in _IN_QUERY:
            return Request(agent.method, agent.endpoint, (*params, *self._query(text)), headers)
        if header(headers, "content-type") is None:
            headers = (("Content-Type", self._content_type(text)), *headers)
        return Request(agent.method, agent.endpoint, params, headers, text.encode("utf-8", "replace"))

    def lost(self, prompt: str) -> str | None:
        """Why nothing of this input would reach the agent; None where something does."""
        if self._names is None or "prompt" in self._names:
            return None
        fields = parse_structured_input(prompt)
        if any(normal(name) in fields for name in self._names):
            return None
        has = f"the input has the fields {', '.join(fields)}" if fields else "the input has no 'Key: value' lines"
        wanted = ", ".join(f"{{{name}}}" for name in dict.fromkeys(self._names))
        return (
            f"agent.request_template takes {wanted} and {has}, so nothing of it would be sent; write {{prompt}} where "
            f"the input belongs{_meant(self._names)}"
        )

    def _text(self, prompt: str, fields: Mapping[str, str]) -> str:
        if self._template is None:
            return json.dumps({"input": prompt})
        if self._json:
            return _fill_json(self._template, prompt, fields)
        encode: Callable[[str], str] = _form_encoded if self._form else str
        return _fill_text(self._template, prompt, fields, encode)

    def _query(self, text: str) -> tuple[tuple[str, str], ...]:
        data = _document(text)
        if isinstance(data, dict):
            return tuple((key, _query_value(value)) for key, value in data.items())
        return (("q", text),) if text else ()

    def _content_type(self, text: str) -> str:
        is_json = self._json or isinstance(_document(text), (dict, list))
        return "application/json" if is_json else "text/plain; charset=utf-8"


def parse_structured_input(text: str) -> dict[str, str]:
    """The `Key: value` lines of an input, keys in lower case with everything but letters and digits removed.

    `Key = value` and `Key - value` count too; the first separator found in that order splits the line. Of two lines
    with one key the later wins.
    """
    fields: dict[str, str] = {}
    for line in text.strip().split("\n"):
        separator = next((s for s in (":", "=", " - ") if s in line), None)
        if separator is None:
            continue
        key, value = line.split(separator, 1)
        if name := normal(key):
            fields[name] = value.strip()
    return fields


def named_in_text(template: str) -> list[str]:
    """The placeholders of a template that are filled as text, each once: all but those that stand for a JSON value."""
    if not _is_json(template):
        return list(dict.fromkeys(_PLACEHOLDER.findall(template)))
    literals = [found[0] for found in _STRING_OR_PLACEHOLDER.finditer(template) if found[1] is None]
    return list(dict.fromkeys(name for literal in literals for name in _PLACEHOLDER.findall(literal)))


def _meant(names: list[str]) -> str:
    close = nearest("prompt", names)
    return f" (is {{{close}}} meant to be it?)" if close else ""


def normal(key: str) -> str:
    """A key as it is compared: in lower case, without anything but letters and digits."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _value(name: str, prompt: str, fields: Mapping[str, str]) -> str | None:
    return prompt if name == "prompt" else fields.get(normal(name))


def _fill_text(template: str, prompt: str, fields: Mapping[str, str], encode: Callable[[str], str]) -> str:
    def fill(found: re.Match[str]) -> str:
        value = _value(found[1], prompt, fields)
        return found[0] if value is None else encode(value)

    return _PLACEHOLDER.sub(fill, template)


def _fill_json(template: str, prompt: str, fields: Mapping[str, str]) -> str:
    def fill(found: re.Match[str]) -> str:
        if found[1] is None:  # a string literal
            return _fill_text(found[0], prompt, fields, lambda value: json.dumps(value)[1:-1])
        value = _value(found[1], prompt, fields)
        if found[1] != "prompt" and (value is None or _SCALAR.fullmatch(value)):
            return value or "null"
        return json.dumps(value)

    return _STRING_OR_PLACEHOLDER.sub(fill, template)


def _is_json(template: str) -> bool:
    """Whether the template is a JSON document once its placeholders hold values."""
    if _PLACEHOLDER.fullmatch(template.strip()):
        return False
    return _document(_fill_json(template, "", {})) is not None


def _why_not_json(template: str) -> str:
    """Placeholders are filled with values of their own length, so that the position is that of the template."""
    filled = _STRING_OR_PLACEHOLDER.sub(lambda found: found[0] if found[1] is None else f'"{found[1]}"', template)
    try:
        json.loads(filled)
    except json.JSONDecodeError as error:
        where = f" (line {error.lineno}, column {error.colno}: {error.msg})"
    except RecursionError:
        where = " (it is nested too deeply)"
    else:
        where = ""
    return (
        f"this looks like JSON but is not once its placeholders hold values{where}; mend it, or send plain text that "
        'does not begin with {" or ["'
    )


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _query_value(value: object) -> str:
    return _encodable(value) if isinstance(value, str) else json.dumps(value)


def _form_encoded(value: str) -> str:
    return quote_plus(value, errors="replace")


def _encodable(text: str) -> str:
    """Query strings are UTF-8; half a surrogate pair is not."""
    return text.encode("utf-8", "replace").decode()
