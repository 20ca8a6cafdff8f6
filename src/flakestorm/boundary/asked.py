"""Requests as they reach the gateway, and the short way in for those that are plain.

Most requests of an agent are a head and a body with its length. `Reading` reads those with httptools (llhttp, the
parser of Node) and gives them whole, as `Whole`; whatever is odd about a connection, it gives back as it came, for
aiohttp's server to read from there on: chunked and large bodies, `Expect`, upgrades, tunnels, several requests at once,
fields that come twice, anything that is no HTTP. So what is refused, and how, is decided in one place.

To what answers a request, both are an `Asked`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

__all__ = ["PLAIN_BYTES", "Asked", "Drains", "Reading", "Whole"]

PLAIN_BYTES = 1024 * 1024
"""A longer request is not read here."""

_HEAD_BYTES = 64 * 1024
_ODD = frozenset(("expect", "sec-websocket-key1", "transfer-encoding", "upgrade"))
_OLD, _NEW = (1, 0), (1, 1)


class Drains(Protocol):
    """Something that is written to."""

    async def drain(self) -> None:
        """Wait until more may be written."""


class Asked(Protocol):
    """What answers a request knows of it; aiohttp's `BaseRequest` is one, and so is `Whole`."""

    @property
    def method(self) -> str: ...
    @property
    def raw_path(self) -> str: ...
    @property
    def version(self) -> tuple[int, int]: ...
    @property
    def headers(self) -> Mapping[str, str]:
        """By name; to be asked for in lower case."""

    @property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]: ...
    @property
    def keep_alive(self) -> bool: ...
    @property
    def body_exists(self) -> bool: ...
    @property
    def transport(self) -> asyncio.Transport | None: ...
    @property
    def protocol(self) -> Any: ...
    @property
    def writer(self) -> Drains: ...


class Whole:
    """A request that is here to its end.

    Args:
        reading: has just read it.
        door: the connection it came on.
    """

    __slots__ = ("body", "headers", "keep_alive", "method", "protocol", "raw_headers", "raw_path", "version")

    def __init__(self, reading: Reading, door: Any) -> None:
        self.method, self.raw_path = reading.method, reading.url.decode("utf-8", "surrogateescape")
        self.version, self.keep_alive, self.body = reading.version, reading.keep_alive, reading.body
        self.raw_headers = tuple(reading.fields)
        self.headers: Mapping[str, str] = reading.headers
        self.protocol = door

    @property
    def body_exists(self) -> bool:
        return bool(self.body)

    @property
    def transport(self) -> asyncio.Transport | None:
        return self.protocol.transport  # type: ignore[no-any-return]

    @property
    def writer(self) -> Drains:
        return self.protocol  # type: ignore[no-any-return]


class Reading:
    """Reads one connection.

    Attributes:
        headed: whether the head of a request is here, and its body is waited for.
    """

    __slots__ = (
        "_complete", "_length", "_odd", "_parser", "_parts", "_raw", "body", "fields", "headed", "headers",
        "keep_alive", "method", "url", "version",
    )  # fmt: skip

    def __init__(self) -> None:
        self._parser = HttpRequestParser(self)
        self._begin()

    def _begin(self) -> None:
        self._raw: list[bytes] = []
        self._parts: list[bytes] = []
        self._length = 0
        self._odd = self._complete = self.headed = self.keep_alive = False
        self.url = self.body = b""
        self.method, self.version = "", _NEW
        self.fields: list[tuple[bytes, bytes]] = []
        self.headers: dict[str, str] = {}

    def read(self, data: bytes, door: Any) -> Whole | bytes | None:
        """What came next.

        Args:
            data: its bytes.
            door: the connection.

        Returns:
            A request that is here now, or None where more of it is to come. Bytes are all that was not given in a
            request: they, and what comes later, are not for this to read.
        """
        self._raw.append(data)
        self._length += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._odd = True
        if self._odd or self._length > (PLAIN_BYTES if self.headed else _HEAD_BYTES):
            return b"".join(self._raw)
        if not self._complete:
            return None
        self.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        whole = Whole(self, door)
        self._begin()
        return whole

    # What the parser calls.

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._odd = self._odd or self._complete

    def on_url(self, url: bytes) -> None:
        """The request's target, or a part of it."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field."""
        self.fields.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """The head is here."""
        if self._complete:
            return
        parser, version = self._parser, self._parser.get_http_version()
        names = self.headers = {
            name.decode("ascii").lower(): value.decode("utf-8", "surrogateescape") for name, value in self.fields
        }
        self.headed, self.method, self.keep_alive = True, parser.get_method().decode(), parser.should_keep_alive()
        if version != "1.1":
            self.version = _OLD
            self._odd = self._odd or version != "1.0"
        if (
            len(names) != len(self.fields)
            or not _ODD.isdisjoint(names)
            or "host" not in names
            or int(names.get("content-length", 0)) > PLAIN_BYTES
            or self.method == "CONNECT"
            or parser.should_upgrade()
        ):
            self._odd = True

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._parts.append(data)

    def on_message_complete(self) -> None:
        """The end of the request."""
        self._complete = True
