"""The addresses by which a page has something started: what it would be, start, how far it is, cancel.

The first and the third are read; the other two are POSTs, which the guard lets through to none but the viewer's own
pages (`guard.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from flakestorm.errors import Misuse
from flakestorm.reports.excerpt import OUTPUT_CHARS, excerpt
from flakestorm.reports.text import encodable, one_line, unbroken, visible
from flakestorm.viewer.answers import Asked
from flakestorm.viewer.orders import Order, Wish, modes_for, order, refused
from flakestorm.viewer.outcome import Outcome
from flakestorm.viewer.shelf import Shelf
from flakestorm.viewer.work import Job, Work

__all__ = ["Starting"]


class Starting:
    """Answers about what is started from pages.

    Args:
        shelf: the store; work: what is under way.
    """

    def __init__(self, shelf: Shelf, work: Work) -> None:
        self._shelf, self._work = shelf, work

    def read(self) -> dict[str, Callable[[Asked], dict[str, Any]]]:
        """Data addresses below /api/."""
        return {"plan": self.plan, "jobs": self.jobs, "job": self.job, "startable": self.startable}

    def startable(self, asked: Asked) -> dict[str, Any]:
        """Whether anything can be started from a run or a tape, and why not."""
        return {"refused": refused(self._shelf, asked.query.get("of", ""))}

    def plan(self, asked: Asked) -> dict[str, Any]:
        """What would be started, in words and as the command line; or `problem`, what is missing."""
        wish = Wish.of_mapping(asked.query)
        found: dict[str, Any] = {"modes": self._modes(wish), "busy": busy.id if (busy := self._work.running) else None}
        try:
            planned = self._order(wish)[1]
        except Misuse as error:
            return {**found, "problem": visible(str(error)), "line": "", "says": []}
        return {**found, "problem": "", "line": planned.line, "says": list(planned.says)}

    def jobs(self, _: Asked) -> dict[str, Any]:
        """All that this viewer has started, the newest first."""
        items = [{"id": job.id, "title": job.order.title, "state": job.state} for job in self._work.jobs.values()]
        return {"total": len(items), "items": items[::-1]}

    def job(self, asked: Asked) -> dict[str, Any]:
        """One of them."""
        id_ = asked.query.get("id", "")
        job = self._work.jobs.get(id_)
        if job is None:
            raise Misuse(
                f"this viewer has not started {one_line(id_, 60)!r}; what an earlier one made is among the tapes"
            )
        return {**_view(job, self._work.folder.parent), "report": self._report(job)}

    async def start(self, request: web.Request) -> dict[str, Any]:
        """POST: start it; gives its id."""
        wish = Wish.of_mapping(await _body(request))
        id_, ordered = await asyncio.to_thread(self._order, wish)
        job = await self._work.start(id_, ordered)
        return {"id": job.id}

    async def cancel(self, request: web.Request) -> dict[str, Any]:
        """POST: end it; answers when it has ended."""
        id_ = str((await _body(request)).get("id", ""))
        await self._work.cancel(id_)
        return {"id": encodable(id_)}

    def _report(self, job: Job) -> str | None:
        """The report of a shrink, where it has saved one: the first since it was started."""
        if job.order.kind != "shrink":
            return None
        since = [each for each in self._shelf.entries() if each.command == "shrink" and each.started_at >= job.at]
        return since[-1].id if since else None

    def _order(self, wish: Wish) -> tuple[str, Order]:
        id_ = self._work.next_id("shrink" if wish.kind == "shrink" else "fork")
        return id_, order(self._shelf, wish, self._work.folder / id_)

    def _modes(self, wish: Wish) -> list[str]:
        if wish.kind != "fork":
            return []
        return modes_for(self._shelf.recording(wish.of).exchange(wish.at).kind)


async def _body(request: web.Request) -> Mapping[str, Any]:
    """The request's JSON object.

    Raises:
        ValueError: it holds none.
    """
    try:
        found = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise ValueError("the body is not JSON") from error
    if not isinstance(found, dict):
        raise ValueError("the body is not a JSON object")
    return found


def _view(job: Job, store: Path) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.order.kind,
        "of": encodable(job.order.of),
        "title": job.order.title,
        "line": job.order.line,
        "says": list(job.order.says),
        "state": job.state,
        "code": job.code,
        "seconds": round(job.seconds, 1),
        "progress": job.progress(),
        "log": visible(job.said()),
        "result": _outcome(job.result, store),
    }


def _outcome(found: Outcome | None, store: Path) -> dict[str, Any] | None:
    """What came of it: the tape that it made, and what is said about it."""
    if found is None:
        return None
    ended = found.error or found.output
    return {
        "said": {name: one_line(value, 600) for name, value in found.said.items()},
        "tape": _within(found.tape, store),
        "output": None if ended is None else excerpt(ended, OUTPUT_CHARS),
        "failed": bool(found.error),
        "reproduce": unbroken(found.reproduce),
    }


def _within(tape: Path | None, store: Path) -> str | None:
    """A tape's address in the viewer; None where it does not lie in the store's folder."""
    if tape is None or not tape.is_file() or not tape.resolve().is_relative_to(store.resolve()):
        return None
    return encodable(tape.resolve().relative_to(store.resolve()).as_posix())
