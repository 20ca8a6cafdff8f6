"""Who may talk to the viewer: a browser on this machine that was given the token, and no page of somebody else.

The server listens on 127.0.0.1 only, but every web page that is open on this machine can send requests there. So the
Host must be ours (a foreign name that resolves to 127.0.0.1 is not), an Origin must be ours, and every request shows
the token: in the address once, then a cookie stands for it.

Reading and starting something are two things. A browser sends its cookies to every port of this machine, so the cookie
opens what is read, and nothing else. What starts or ends a command is a POST with a JSON body, from a page whose Origin
is ours, that shows the token itself in a header; the pages keep it where only pages of this host and port can read it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

__all__ = ["HEADERS", "POLICY", "Guard"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
"""What a page of the viewer may do: load what the viewer serves, and make no markup or script out of text."""

HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_UNKNOWN = "401: the token is missing or wrong; open the address that `flakestorm view` printed\n"
_NOT_OURS = "403: only the viewer's own pages may ask for this\n"
_NOT_HERE = "403: this is the flakestorm viewer of this machine; open it at the address that it printed\n"


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets in who shows the token.

    Args:
        token: the secret.
        port: where the server listens.
    """

    token: str
    port: int

    @property
    def cookie(self) -> str:
        """The cookie's name; cookies do not tell ports apart, and there may be more than one viewer."""
        return f"flakestorm-{self.port}"

    @property
    def reading(self) -> str:
        """The cookie's value: it follows from the token, and the token does not follow from it."""
        return hmac.new(self.token.encode(), b"reading", hashlib.sha256).hexdigest()

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 403 or 401, or hand on; every answer carries `HEADERS`."""
        refusal = self._refusal(request)
        answer = await _handled(request, handler) if refusal is None else refusal
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        answer.headers.setdefault("Content-Security-Policy", POLICY)
        if answer.status < 400 and self._is(request.query.get("token", "")):
            answer.set_cookie(self.cookie, self.reading, httponly=True, samesite="Strict", path="/")
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        host, origin = request.headers.get("Host", "").lower(), request.headers.get("Origin")
        own = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")}
        if host not in own or (origin is not None and origin not in {f"http://{name}" for name in own}):
            return web.Response(status=403, text=_NOT_HERE)
        if request.method not in ("GET", "HEAD"):
            return self._refusal_to_act(request, host)
        if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and not _opens_a_page(request):
            return web.Response(status=403, text=_NOT_HERE)
        if _same(request.cookies.get(self.cookie, ""), self.reading):
            return None
        shown = (request.query.get("token", ""), _bearer(request))
        return None if any(map(self._is, shown)) else web.Response(status=401, text=_UNKNOWN)

    def _refusal_to_act(self, request: web.Request, host: str) -> web.Response | None:
        """Of a request that would start or end something; its Host is ours."""
        same = request.headers.get("Origin") == f"http://{host}"
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        if not same or site != "same-origin" or request.content_type != "application/json":
            return web.Response(status=403, text=_NOT_OURS)
        return None if self._is(_bearer(request)) else web.Response(status=401, text=_UNKNOWN)

    def _is(self, shown: str) -> bool:
        return _same(shown, self.token)


def _same(shown: str, secret: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), secret.encode())


async def _handled(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return error if isinstance(error, web.StreamResponse) else web.Response(status=500)


def _opens_a_page(request: web.Request) -> bool:
    return request.headers.get("Sec-Fetch-Mode") == "navigate" and request.headers.get("Sec-Fetch-Dest") == "document"


def _bearer(request: web.Request) -> str:
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""
