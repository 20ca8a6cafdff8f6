"""The viewer's addresses: pages and what they load. Every answer is made from the store, by reading alone.

A page is one file and a few scripts; which report, cell, run or exchange it shows is in its address, so that it can be
linked to. Lists are given in slices.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from flakestorm.errors import FlakestormError
from flakestorm.reports.text import plain, visible
from flakestorm.viewer.answers import Answers
from flakestorm.viewer.guard import Guard
from flakestorm.viewer.shelf import Shelf

__all__ = ["PAGES", "make_app"]

PAGES = ("/", "/report", "/run", "/tapes", "/tape", "/diff")
"""Addresses a person may open."""

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_SCRIPTS = ("main", "dom", "list", "home", "report", "run", "exchange", "diff", "chart", "heatmap")


def make_app(folder: Path, guard: Guard) -> web.Application:
    """The viewer of the store in this folder, for those that the guard lets in."""
    app = web.Application(middlewares=[guard.check])
    answers = Answers(Shelf(folder))
    page = _static("index.html")
    for path in PAGES:
        app.router.add_get(path, page)
    app.router.add_get("/static/report.css", _static("templates/report.css", "flakestorm.reports"))
    app.router.add_get("/static/viewer.css", _static("viewer.css"))
    for name in _SCRIPTS:
        app.router.add_get(f"/static/{name}.js", _static(f"{name}.js"))
    for path, answer in answers.all().items():
        app.router.add_get(f"/api/{path}", _json(answer))
    app.router.add_get("/report.html", _document(answers.page, "text/html"))
    app.router.add_get("/report.json", _document(answers.document, "application/json"))
    return app


def _static(name: str, room: str = "flakestorm.viewer") -> Callable[[web.Request], Awaitable[web.Response]]:
    """One of our own files; read once."""
    place = files(room).joinpath(*(("static", name) if room == "flakestorm.viewer" else name.split("/")))
    body, kind = place.read_bytes(), _TYPES[Path(name).suffix]

    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return serve


def _json(answer: Callable[[web.Request], Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
    """An answer as JSON, worked out in a thread of its own; what went wrong is said in words."""

    async def serve(request: web.Request) -> web.Response:
        try:
            found, status = await asyncio.to_thread(answer, request), 200
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
        headers = {"Content-Security-Policy": "frame-ancestors 'none'; connect-src 'none'; form-action 'none'"}
        return web.Response(body=text.encode(), content_type=kind, charset="utf-8", headers=headers)

    return serve


def _encoded(found: dict[str, Any] | Sequence[Any]) -> bytes:
    try:
        return orjson.dumps(found)
    except TypeError:  # half a surrogate pair, or an integer beyond 64 bits
        return json.dumps(plain(found)).encode()
