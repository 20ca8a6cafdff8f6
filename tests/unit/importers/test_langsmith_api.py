"""The client, against a loopback server that speaks LangSmith's API."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from flakestorm.errors import Misuse, WorldFailed
from flakestorm.importers.langsmith_api import LangSmith, Wanted, since
from upstream import Request, Upstream, document, redirect, text

ROOT = {"id": "r", "trace_id": "r", "session_id": "p", "run_type": "chain", "status": "error", "error": "boom",
        "start_time": "2026-01-02T00:00:00", "end_time": "2026-01-02T00:00:05"}  # fmt: skip
CHILD = {"id": "c", "trace_id": "r", "parent_run_id": "r", "run_type": "tool"}
OTHER = {**ROOT, "id": "o", "trace_id": "o", "status": "success", "error": None, "end_time": "2026-01-02T00:00:01"}


def query(request: Request) -> Any:
    asked = request.json()
    if "trace" in asked:
        runs = [run for run in (ROOT, CHILD, OTHER) if run["trace_id"] == asked["trace"]]
    else:
        runs = [[ROOT], [OTHER]][1 if asked.get("cursor") else 0]
        if not asked.get("cursor"):
            return document({"runs": runs, "cursors": {"next": "n"}})
    return document({"runs": runs, "cursors": {"next": None}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("LANGSMITH_API_KEY", "the-key")
    with Upstream() as up:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", f"{up.url}/")
        up.reply("/runs/r", document(ROOT))
        up.reply("/runs/query", query)
        up.reply("/sessions", document([{"id": "p", "name": "prod"}]))
        yield up


def test_a_run_with_what_it_called(server: Upstream) -> None:
    assert [run["id"] for run in LangSmith().run("r")] == ["r", "c"]
    assert {request.headers["x-api-key"] for request in server.requests} == {"the-key"}


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (Wanted(), ["r"]),
        (Wanted("all"), ["r", "o"]),
        (Wanted("warning"), []),
        (Wanted("all", min_latency_ms=2000), ["r"]),
        (Wanted("all", "2026-01-03..2026-01-04"), []),
        (Wanted("all", "2026-01-01..2026-01-02"), ["r", "o"]),
    ],
)
def test_runs_of_a_project_page_by_page_and_filtered(server: Upstream, wanted: Wanted, ids: list[str]) -> None:
    assert [tree[0]["id"] for tree in LangSmith().project("prod", wanted)] == ids
    pages = [r.json() for r in server.requests if r.path == "/runs/query" and "trace" not in r.json()]
    assert [page.get("cursor") for page in pages] == [None, "n"]
    assert pages[0]["is_root"] is True
    assert pages[0].get("error") == (True if wanted.status == "error" else None)
    if wanted.min_latency_ms:
        assert pages[0]["filter"] == "gte(latency, 2)"


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (text("no", status=401), Misuse, "refuses the key in LANGSMITH_API_KEY"),
        (text("no", status=404), Misuse, "404 to GET"),
        (text("no", status=500), WorldFailed, "answered 500"),
        (text("no"), WorldFailed, "is not JSON"),
        (document([]), WorldFailed, "is not a run"),
        (redirect("http://127.0.0.1:9/elsewhere"), WorldFailed, "answered 30"),
    ],
)
def test_what_is_wrong_is_said(server: Upstream, reply: Any, error: type[Exception], said: str) -> None:
    server.reply("/runs/r", reply)
    with pytest.raises(error, match=said):
        LangSmith().run("r")


def test_no_key_no_project_nobody_there(server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    server.reply("/sessions", document([]))
    with pytest.raises(Misuse, match="has no project 'gone'"):
        LangSmith().project("gone", Wanted())
    with pytest.raises(WorldFailed, match="could not be reached"):
        LangSmith(endpoint="http://127.0.0.1:9").run("r")
    with pytest.raises(Misuse, match="must be an http or https URL"):
        LangSmith(endpoint="file:///etc/passwd")
    monkeypatch.delenv("LANGSMITH_API_KEY")
    monkeypatch.delenv("LANGCHAIN_API_KEY", raising=False)
    with pytest.raises(Misuse, match="set the environment variable LANGSMITH_API_KEY"):
        LangSmith()


def test_ranges_of_dates() -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    assert since(None) == (None, None)
    assert since("last_7_days", now) == (datetime(2026, 1, 24, tzinfo=UTC), None)
    assert since("last_hour", now)[0] == datetime(2026, 1, 30, 23, tzinfo=UTC)
    assert since("2026-01-01..2026-01-02") == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    with pytest.raises(Misuse, match="cannot be read; write last_7_days"):
        since("recently")


def test_a_lone_model_call_has_nothing_below_it(server: Upstream) -> None:
    server.reply("/runs/m", document({"id": "m", "run_type": "llm"}))
    assert [run["id"] for run in LangSmith().run("m")] == ["m"]
    assert not [request for request in server.requests if request.path == "/runs/query"]
