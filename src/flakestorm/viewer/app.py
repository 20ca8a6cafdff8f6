"""The viewer's addresses: pages and what they load. Answers are made from the store, by reading alone; two addresses,
which take POSTs, start and cancel a fork or a shrink (`starting.py`).

A page is one file and a few scripts; which report, cell, run or exchange it shows is in its address, so that it can be
linked to. Lists are given in slices.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from flakestorm.core.beside import beside
from flakestorm.errors import FlakestormError
from flakestorm.reports.text import plain, visible
from flakestorm.viewer.answers import Answers
from flakestorm.viewer.guard import Guard
from flakestorm.viewer.orders import BODY_BYTES
from flakestorm.viewer.shelf import Shelf
from flakestorm.viewer.starting import Starting
from flakestorm.viewer.work import Work

__all__ = ["PAGES", "make_app"]

PAGES = ("/", "/report", "/run", "/tapes", "/tape", "/diff", "/work")
"""Addresses a person may open."""

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_SCRIPTS = ("main", "dom", "list", "home", "report", "run", "exchange", "diff", "chart", "heatmap", "start", "work")


_KEPT = "frame-ancestors 'none'; connect-src 'none'; form-action 'none'; sandbox allow-scripts"
"""What a report that is a page of its own may do; `sandbox` shuts it off from the viewer's pages and what they keep."""

Telling = Callable[[web.Request], Awaitable[dict[str, Any]]]


def make_app(folder: Path, guard: Guard) -> web.Application:
    """The viewer of the store in this folder, for those that the guard lets in."""
    app = web.Application(middlewares=[guard.check], client_max_size=2 * BODY_BYTES)
    shelf, work = Shelf(folder), Work(folder)
    answers, starting = Answers(shelf), Starting(shelf, work)
    page = _static("viewer", "static", "index.html")
    for path in PAGES:
        app.router.add_get(path, page)
    app.router.add_get("/static/report.css", _static("reports", "templates", "report.css"))
    app.router.add_get("/static/viewer.css", _static("viewer", "static", "viewer.css"))
    app.router.add_get("/static/shared.js", _static("reports", "templates", "shared.js"))
    for name in _SCRIPTS:
        app.router.add_get(f"/static/{name}.js", _static("viewer", "static", f"{name}.js"))
    for path, answer in {**answers.all(), **starting.read()}.items():
        app.router.add_get(f"/api/{path}", _json(_in_a_thread(answer)))
    app.router.add_post("/api/start", _json(starting.start))
    app.router.add_post("/api/cancel", _json(starting.cancel))
    app.router.add_get("/report.html", _document(answers.page, "text/html"))
    app.router.add_get("/report.json", _document(answers.document, "application/json"))

    async def ending(_: web.Application) -> None:
        await work.close()

    app.on_cleanup.append(ending)
    return app


def _static(room: str, *names: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    """One of our own files; read once."""
    body, kind = beside(room, *names).read_bytes(), _TYPES[Path(names[-1]).suffix]

    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return serve


def _in_a_thread(answer: Callable[[web.Request], dict[str, Any]]) -> Telling:
    """An answer that reads files, worked out in a thread of its own."""
    return lambda request: asyncio.to_thread(answer, request)


def _json(answer: Telling) -> Callable[[web.Request], Awaitable[web.Response]]:
    """An answer as JSON; what went wrong is said in words."""

    async def serve(request: web.Request) -> web.Response:
        try:
            found, status = await answer(request), 200
        except FlakestormError as error:
            found, status = {"error": visible(str(error))}, 404
        except ValueError as error:
            found, status = {"error": visible(f"the address is wrong: {error}")}, 400
        return web.Response(body=_encoded(found), status=status, content_type="application/json")

    return serve


def _document(answer: Callable[[web.Request], str], kind: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A whole report to keep. The page brings a stricter policy of its own, which allows its script by hash."""

    async def serve(request: web.Request) -> web.Response:
        try:
            text = await asyncio.to_thread(answer, request)
        except FlakestormError as error:
            return web.Response(status=404, text=visible(str(error)))
        headers = {"Content-Security-Policy": _KEPT}
        return web.Response(body=text.encode(), content_type=kind, charset="utf-8", headers=headers)

    return serve


def _encoded(found: dict[str, Any] | Sequence[Any]) -> bytes:
    try:
        return orjson.dumps(found)
    except TypeError:  # half a surrogate pair, or an integer beyond 64 bits
        return json.dumps(plain(found)).encode()
