"""What is inside a CONNECT tunnel, where the gateway can read it: a connection within the agent's connection.

The first bytes that an agent sends through its tunnel say what it speaks. TLS is answered with a certificate made for
the host (`intercept.py`); the requests in it, or those that come in the clear, are read by the gateway's own server as
if they had come on a connection of their own. Anything else is not for the gateway to read.

A client that does not accept the certificate ends the connection, during the handshake or right after it, and one that
speaks nothing but HTTP/2 begins with a preface no HTTP/1.1 client sends. Both come out as `trouble`.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from flakestorm.boundary.http2 import PREFACE, refusal

if TYPE_CHECKING:
    from aiohttp.web_protocol import RequestHandler

__all__ = ["Inside", "Speech", "spoken"]

Speech = Literal["tls", "http", "nothing", "other"]
"""What came first: a TLS handshake, an HTTP request, the end of the connection, or neither of these."""

_SILENCE_S = 2.0  # a client that says nothing for so long waits for the server to speak first: no HTTP, no TLS
_HANDSHAKE_S = 30.0
_HTTP = re.compile(rb"[A-Z]{3,20} ")


async def spoken(client: asyncio.Transport) -> Speech:
    """Look at the first bytes from a client, which stay where they are.

    Args:
        client: its connection, of which reading is paused.
    """
    loop = asyncio.get_running_loop()
    # The loop forbids to watch a socket it reads from by itself; it does not mind another descriptor for the same one.
    with socket.socket(fileno=os.dup(client.get_extra_info("socket").fileno())) as peephole:
        peephole.setblocking(False)
        came = asyncio.Event()
        loop.add_reader(peephole.fileno(), came.set)
        try:
            async with asyncio.timeout(_SILENCE_S):
                await came.wait()
            first = peephole.recv(24, socket.MSG_PEEK)
        except TimeoutError:
            return "other"
        except OSError:
            return "nothing"
        finally:
            loop.remove_reader(peephole.fileno())
    if not first:
        return "nothing"
    if first[:1] == b"\x16":  # the record type of a handshake
        return "tls"
    return "http" if _HTTP.match(first) else "other"


class Inside(asyncio.Protocol):
    """The server's end of the connection inside the tunnel.

    Args:
        handler: reads the requests.
        host: for messages, `HOST:PORT`.
    """

    def __init__(self, handler: RequestHandler, host: str) -> None:
        self._handler, self._host = handler, host
        self._transport: asyncio.Transport | None = None
        self._secure = self._begun = False
        self._early: list[bytes] = []  # what came along with the end of the handshake, before anybody heard of that
        self._over = asyncio.get_running_loop().create_future()

    async def open(self, client: asyncio.Transport, context: ssl.SSLContext | None) -> str:
        """Take over the client's connection, and answer its handshake where there is one.

        Args:
            client: the connection; reading is paused, and nobody has read what it sent.
            context: the settings for TLS; None where it speaks in the clear.

        Returns:
            What went wrong, in words; nothing where it went well.
        """
        if context is None:
            client.set_protocol(self)
            self.connection_made(client)
            client.resume_reading()
            return ""
        self._secure = True
        try:
            transport = await asyncio.get_running_loop().start_tls(
                client, self, context, server_side=True, ssl_handshake_timeout=_HANDSHAKE_S
            )
        except ssl.SSLError as error:
            return f"the agent refused the interception certificate for {self._host} ({_alert(error)}); {_ADVICE}"
        except OSError as error:
            return self._left("during the TLS handshake", f"{type(error).__name__}: {error}".removesuffix(": "))
        if transport is None or transport.is_closing():
            return "" if self._early else self._left("right after the TLS handshake, without a request")
        self.connection_made(transport)
        for data in self._early:
            self.data_received(data)
        return ""

    async def over(self) -> str:
        """Wait for the end of the connection: what went wrong, in words, or nothing."""
        return str(await asyncio.shield(self._over))

    def close(self) -> None:
        """End it, unless it is ending."""
        if self._transport is not None and not self._over.done():
            self._transport.abort()

    # --- what the loop calls --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            self._early.append(data)
            return
        if not self._begun:
            self._begun = True
            if data.startswith(PREFACE[:4]):
                self._refuse_http2()
        if not self._over.done():
            self._handler.data_received(data)

    def eof_received(self) -> None:
        self._handler.eof_received()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._transport is not None:
            self._handler.connection_lost(exc)
        if not self._over.done():
            refused = self._secure and not self._begun and not self._early
            self._over.set_result(self._left("right after the TLS handshake, without a request") if refused else "")

    def _left(self, when: str, how: str = "") -> str:
        said = f" ({how})" if how else ""
        return (
            f"the agent seems to have refused the interception certificate for {self._host}: it ended the connection "
            f"{when}{said}; {_ADVICE}"
        )

    def _refuse_http2(self) -> None:
        self._over.set_result(
            f"the agent speaks nothing but HTTP/2 to {self._host}, and flakestorm HTTP/1.1 only: let its client fall "
            "back to HTTP/1.1"
        )
        if self._transport is not None:
            with suppress(OSError):
                self._transport.write(refusal("flakestorm speaks HTTP/1.1 only"))
            self._transport.close()


_ADVICE = (
    "a client that pins certificates, has a trust store of its own or speaks HTTP/2 only cannot be intercepted; let it "
    "trust the file that SSL_CERT_FILE names, or give it a base URL"
)


def _alert(error: ssl.SSLError) -> str:
    """OpenSSL's own word for what came, e.g. `tlsv1 alert unknown ca`."""
    return (error.reason or str(error) or "SSLError").replace("_", " ").lower()
