"""The growing chat as `tape_ours` and `tape_tracefork` ask for it: at the transport, or with Anthropic's client.

It runs in both of their environments, so it knows neither flakestorm nor tracefork.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from bench.chat import HEADERS, PATH, answer

if TYPE_CHECKING:
    from anthropic import Anthropic

__all__ = ["asking", "clients", "spent_us", "told"]

Main = Callable[[str, int, Path], None]


def asking(transport: httpx2.BaseTransport, url: str) -> Callable[[bytes], bytes]:
    """From the body of a request to that of its reply."""

    def ask(body: bytes) -> bytes:
        request = httpx2.Request("POST", f"{url}{PATH}", headers=HEADERS, content=body)
        response = transport.handle_request(request)
        try:
            return response.read()
        finally:
            response.close()

    return ask


def clients(url: str) -> tuple[Anthropic, Anthropic]:
    """Anthropic's own client as a user has it, and one that is answered at once and asks nobody."""

    def alone(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=json.loads(answer(request.content.count(b'"role":"user"') - 1)))

    from anthropic import Anthropic  # at the transport nobody needs it, and memory is measured there

    client = Anthropic(base_url=url, api_key="sk-ant-none", max_retries=0)
    answered = httpx2.Client(transport=httpx2.MockTransport(alone))
    return client, Anthropic(base_url=url, api_key="sk-ant-none", max_retries=0, http_client=answered)


def spent_us(work: Callable[[], object], turns: int) -> float:
    """Microseconds of process CPU per turn."""
    began = time.process_time()
    work()
    return (time.process_time() - began) / turns * 1e6


def told(main: Callable[[str, str, int, Path], None], through_sdk: Main) -> None:
    """Do what the command line says: `record|replay|sdk URL TURNS TAPE`."""
    what, url, turns, tape = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    if what == "sdk":
        through_sdk(url, turns, tape)
    else:
        main(what, url, turns, tape)
