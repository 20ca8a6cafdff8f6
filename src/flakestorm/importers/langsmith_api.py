"""Runs from LangSmith itself: a small client for the few calls that fetching an incident takes.

The key and the address come from the environment only (LANGSMITH_API_KEY, LANGSMITH_ENDPOINT). Nothing is believed of a
reply: it is bounded, redirections are not followed (they would carry the key elsewhere), and the filters are applied
here again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from flakestorm.errors import Misuse, WorldFailed

__all__ = ["ENDPOINT", "LangSmith", "Wanted", "since"]

ENDPOINT = "https://api.smith.langchain.com"
"""Where LangSmith is, unless LANGSMITH_ENDPOINT says otherwise."""

TIMEOUT_S = 30.0
MOST_RUNS = 1000
"""Runs of one project that are fetched at most."""

_MAX_BYTES = 64 * 2**20
_PAGE = 100
_UNITS = {"minute": 1, "hour": 60, "day": 1440, "week": 10080, "month": 43200}
_LAST = re.compile(r"last_(?:(\d{1,5})_)?(minute|hour|day|week|month)s?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs of a project.

    Args:
        status: `error`, `warning` or `all`.
        date_range: how far back, e.g. `last_7_days`, or two dates `2026-01-01..2026-01-31`; None for no limit.
        min_latency_ms: runs that took at least this long, in milliseconds.
    """

    status: str = "error"
    date_range: str | None = None
    min_latency_ms: int | None = None


class LangSmith:
    """The client.

    Args:
        key, endpoint: default: what the environment says.

    Raises:
        Misuse: there is no key, or the address is none.
    """

    def __init__(self, key: str | None = None, endpoint: str | None = None) -> None:
        self._key = key or os.environ.get("LANGSMITH_API_KEY") or os.environ.get("LANGCHAIN_API_KEY") or ""
        if not self._key:
            raise Misuse("fetching from LangSmith needs a key: set the environment variable LANGSMITH_API_KEY")
        told = endpoint or os.environ.get("LANGSMITH_ENDPOINT") or os.environ.get("LANGCHAIN_ENDPOINT") or ENDPOINT
        self.endpoint = told.rstrip("/")
        if urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise Misuse(f"LANGSMITH_ENDPOINT must be an http or https URL, and it is {told!r}")
        self._opener = build_opener(_Stay())

    def run(self, run_id: str) -> list[dict[str, Any]]:
        """A run with all that it called, as LangSmith keeps them.

        Raises:
            Misuse: there is no such run, or the key is refused.
            WorldFailed: LangSmith could not be reached, or its reply is not what was expected.
        """
        found = self._call("GET", f"/runs/{quote(run_id, safe='')}")
        if not isinstance(found, dict) or "id" not in found:
            raise WorldFailed(
                f"LangSmith's reply to GET /runs/{run_id} is not a run: an object with an 'id' was expected"
            )
        return self._whole(found)

    def project(self, name: str, wanted: Wanted) -> list[list[dict[str, Any]]]:
        """The runs of a project that are wanted, each with all that it called, in LangSmith's order.

        Raises:
            Misuse, WorldFailed: as `run`.
        """
        earliest, latest = since(wanted.date_range)
        sessions = self._call("GET", f"/sessions?{urlencode({'name': name, 'limit': 1})}")
        ids = [s["id"] for s in sessions if isinstance(s, dict) and "id" in s] if isinstance(sessions, list) else []
        if not ids:
            raise Misuse(f"LangSmith has no project {name!r}")
        query: dict[str, Any] = {"session": ids[:1], "is_root": True}
        if wanted.status == "error":
            query["error"] = True
        rules = [f'gte(start_time, "{earliest.isoformat()}")'] if earliest else []
        rules += [f"gte(latency, {wanted.min_latency_ms / 1000:g})"] if wanted.min_latency_ms else []
        rules += ['eq(status, "warning")'] if wanted.status == "warning" else []
        if rules:
            query["filter"] = rules[0] if len(rules) == 1 else f"and({', '.join(rules)})"
        roots = [run for run in self._pages(query) if _fits(run, wanted, earliest, latest)]
        return [self._whole(run) for run in roots]

    def _whole(self, root: dict[str, Any]) -> list[dict[str, Any]]:
        """The run and those below it."""
        if root.get("run_type") == "llm":  # a model calls nothing
            return [root]
        query: dict[str, Any] = {"trace": root.get("trace_id") or root["id"]}
        if root.get("session_id"):
            query["session"] = [root["session_id"]]
        try:
            runs = list(self._pages(query))
        except Misuse:
            if not root.get("child_runs"):
                raise
            runs = []
        by_id = {run["id"]: run for run in [root, *runs] if "id" in run}
        below: dict[str, dict[str, Any]] = {root["id"]: root}
        while more := {k: r for k, r in by_id.items() if k not in below and r.get("parent_run_id") in below}:
            below |= more
        return list(below.values())

    def _pages(self, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        cursor: Any = None
        count = 0
        while count < MOST_RUNS:
            page = self._call(
                "POST", "/runs/query", {**query, "limit": _PAGE, **({"cursor": cursor} if cursor else {})}
            )
            runs = page.get("runs") if isinstance(page, dict) else None
            if not isinstance(runs, list):
                raise WorldFailed("LangSmith's reply to POST /runs/query is not a list of 'runs', as was expected")
            yield from (run for run in runs if isinstance(run, dict))
            count += len(runs)
            cursors = page.get("cursors")
            before, cursor = cursor, cursors.get("next") if isinstance(cursors, dict) else None
            if not cursor or cursor == before or not runs:
                return

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"x-api-key": self._key, "accept": "application/json", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.endpoint + path, data=data, headers=headers, method=method)  # noqa: S310 -- checked above
        what = f"{method} {self.endpoint}{path.partition('?')[0]}"
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as reply:
                content = reply.read(_MAX_BYTES + 1)
        except HTTPError as error:
            with error:
                raise _refused(what, error.code) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise WorldFailed(f"LangSmith could not be reached: {what}: {reason}") from None
        if len(content) > _MAX_BYTES:
            raise WorldFailed(f"LangSmith's reply to {what} is larger than {_MAX_BYTES >> 20} MB")
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise WorldFailed(f"LangSmith's reply to {what} is not JSON") from None


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """A redirection is an error like any other: the key goes nowhere else."""


def _refused(what: str, status: int) -> Misuse | WorldFailed:
    if status in (401, 403):
        return Misuse(f"LangSmith refuses the key in LANGSMITH_API_KEY ({status} to {what})")
    if status in (400, 404, 422):
        return Misuse(f"LangSmith knows no such thing ({status} to {what}); check the id or the project's name")
    return WorldFailed(f"LangSmith answered {status} to {what}")


def since(date_range: str | None, now: datetime | None = None) -> tuple[datetime | None, datetime | None]:
    """From when to when a range of dates goes.

    Args:
        date_range: `last_7_days`, `last_24_hours`, `2026-01-01..2026-01-31`, or None for all time.
        now: the time of day.

    Raises:
        Misuse: it is none of these.
    """
    if date_range is None:
        return None, None
    if match := _LAST.fullmatch(date_range.strip().lower()):
        span = timedelta(minutes=int(match[1] or 1) * _UNITS[match[2]])
        return (now or datetime.now(UTC)) - span, None
    first, _, last = date_range.partition("..")
    try:
        begin, end = _moment(first.strip()), _moment(last.strip()) if last.strip() else None
    except ValueError:
        raise Misuse(
            f"date_range {date_range!r} cannot be read; write last_7_days, last_24_hours or 2026-01-01..2026-01-31"
        ) from None
    day = end is not None and len(last.strip()) == 10  # a day is meant to its end
    return begin, end + timedelta(days=1) if end is not None and day else end


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _fits(run: Mapping[str, Any], wanted: Wanted, earliest: datetime | None, latest: datetime | None) -> bool:
    """Whether a run is wanted, by what it says itself; a server may know less of filters."""
    if wanted.status == "error" and not (run.get("error") or run.get("status") == "error"):
        return False
    if wanted.status == "warning" and run.get("status") != "warning":
        return False
    try:
        start = _moment(str(run.get("start_time")))
    except ValueError:
        return earliest is None and latest is None and not wanted.min_latency_ms
    if (earliest is not None and start < earliest) or (latest is not None and start >= latest):
        return False
    if not wanted.min_latency_ms:
        return True
    try:
        took = _moment(str(run.get("end_time"))) - start
    except ValueError:
        return False
    return took / timedelta(milliseconds=1) >= wanted.min_latency_ms
