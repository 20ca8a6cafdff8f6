"""`flakestorm view` from outside: the real command, and who it answers."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from e2e_support import flakestorm
from report_samples import sample
from viewer_support import Viewer, saved_with_tapes, viewing


def ask(viewer: Viewer, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.request(method, viewer.root + path, headers=named, timeout=60)


def test_it_prints_its_address_and_shows_what_was_saved(tmp_path: Path) -> None:
    id_ = saved_with_tapes(tmp_path / ".flakestorm", tmp_path / "tapes", sample())
    with viewing(tmp_path) as viewer:
        root, _, token = viewer.address.partition("/?token=")
        assert root.startswith("http://127.0.0.1:")
        assert len(token) >= 32
        page = httpx.get(viewer.address)
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        cookie = page.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        answer = ask(viewer, "/api/reports", Cookie=cookie.partition(";")[0])
        assert [each["id"] for each in answer.json()["items"]] == [id_]
        report = ask(viewer, f"/report.json?id={id_}", Authorization=f"Bearer {token}").json()
        assert report["format"] == "flakestorm-report/1"
        assert b'data-testid="cell"' in ask(viewer, f"/report.html?id={id_}", Authorization=f"Bearer {token}").content


def test_nothing_is_shown_without_the_token_or_to_other_pages(tmp_path: Path) -> None:
    with viewing(tmp_path) as viewer:
        token = viewer.address.partition("token=")[2]
        for path in ("/", "/api/reports", "/static/main.js", "/report.html", "/nowhere"):
            assert ask(viewer, path).status_code == 401, path
            assert ask(viewer, f"{path}?token=wrong").status_code == 401
        own = {"Authorization": f"Bearer {token}"}
        assert ask(viewer, "/", **own).status_code == 200
        assert ask(viewer, "/", Host="evil.test", **own).status_code == 403
        assert ask(viewer, "/api/reports", Origin="http://evil.test", **own).status_code == 403
        assert ask(viewer, "/api/reports", Sec_Fetch_Site="cross-site", **own).status_code == 403
        assert ask(viewer, "/api/reports", "POST", **own).status_code == 403
        assert ask(viewer, "/static/../../pyproject.toml", **own).status_code == 404
        policy = ask(viewer, "/", **own).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_without_a_store_it_shows_none(tmp_path: Path) -> None:
    with viewing(tmp_path) as viewer:
        assert httpx.get(viewer.address.replace("/?", "/api/reports?")).json()["total"] == 0


def test_what_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    saved_with_tapes(tmp_path / ".flakestorm", tmp_path / "tapes", sample())
    with viewing(tmp_path) as viewer:
        for path, status, words in (
            ("report?id=nothing", 404, "no report 'nothing'"),
            ("exchanges?of=tape:../../etc/passwd", 404, "there is no tape"),
            ("reports?offset=many", 400, "the address is wrong"),
        ):
            answer = httpx.get(viewer.address.replace("/?", f"/api/{path}&"))
            assert answer.status_code == status
            assert words in answer.json()["error"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it(tmp_path: Path, number: int, code: int) -> None:
    with viewing(tmp_path) as viewer:
        assert viewer.stop(number) == (code, f"showing {tmp_path / '.flakestorm'}; Ctrl-C ends it\n")


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with viewing(tmp_path) as viewer:
        port = str(urlsplit(viewer.root).port)
        done = flakestorm(tmp_path, "view", "--no-open", "--port", port)
    assert done.code == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in done.err
    assert "--port" in done.err
