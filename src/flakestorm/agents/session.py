"""The HTTP client flakestorm itself uses to talk to agents."""

from __future__ import annotations

import aiohttp

from flakestorm.version import __version__

__all__ = ["new_session"]


def new_session() -> aiohttp.ClientSession:
    """A session that adds nothing of its own to a run.

    No proxies from the environment, no cookies from one run to the next, no limit on connections, and a fresh
    connection for each request: a kept-alive one that the agent had just closed would look like a crash.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": f"flakestorm/{__version__}"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
        trust_env=False,
    )
