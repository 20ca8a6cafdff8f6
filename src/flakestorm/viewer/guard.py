"""Who may talk to the viewer: a browser on this machine that was given the token, and no page of somebody else.

The server listens on 127.0.0.1 only, but every web page that is open on this machine can send requests there. So the
Host must be ours (a foreign name that resolves to 127.0.0.1 is not), an Origin must be ours, and every request shows
the token: in the address once, then in a cookie.
"""

from __future__ import annotations

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

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 403 or 401, or hand on; every answer carries `HEADERS`."""
        refusal = self._refusal(request)
        answer = await _handled(request, handler) if refusal is None else refusal
        for name, value in HEADERS.items():
            answer.headers.setdefault(name, value)
        answer.headers.setdefault("Content-Security-Policy", POLICY)
        if answer.status < 400 and self._is(request.query.get("token", "")):
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        own = {f"{host}:{self.port}" for host in ("127.0.0.1", "localhost")}
        origin = request.headers.get("Origin")
        foreign = origin is not None and origin not in {f"http://{host}" for host in own}
        if request.headers.get("Host", "").lower() not in own or foreign:
            return web.Response(status=403, text=_NOT_HERE)
        if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and not _opens_a_page(request):
            return web.Response(status=403, text=_NOT_HERE)
        shown = (request.query.get("token", ""), request.cookies.get(self.cookie, ""), _bearer(request))
        return None if any(map(self._is, shown)) else web.Response(status=401, text=_UNKNOWN)

    def _is(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.token.encode())


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
