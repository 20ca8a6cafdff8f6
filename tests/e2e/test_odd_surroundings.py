"""Surroundings that are legal and rare: an IPv6 world, readers that leave early, streams that are closed or full."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from e2e_support import FLAKESTORM, clean_env, flakestorm, write_config

CLIENTS = """
import asyncio, sys
import aiohttp, httpx, httpx2, requests

async def by_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(URL) as reply:
        return await reply.text()

async def by_httpx():
    async with httpx.AsyncClient() as client:
        return (await client.get(URL)).text

URL = sys.argv[1]
print(httpx.get(URL).text, httpx2.get(URL).text, requests.get(URL).text, end=" ")
print(asyncio.run(by_aiohttp()), asyncio.run(by_httpx()), end="")
"""


class _World(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        pass


class _Six(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@pytest.fixture
def ipv6_world() -> Iterator[str]:
    try:
        server = _Six(("::1", 0), _World)
    except OSError as error:
        pytest.skip(f"no IPv6 loopback here: {error}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://[::1]:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_client_reaches_an_ipv6_world_and_is_recorded(tmp_path: Path, ipv6_world: str) -> None:
    (tmp_path / "agent.py").write_text(CLIENTS)
    done = flakestorm(tmp_path, "record", "-o", "x.tape", "--", sys.executable, "agent.py", f"{ipv6_world}/a")
    assert done.out == " ".join(["hello"] * 5), done.err
    shown = flakestorm(tmp_path, "tapes", "show", "x.tape", "--format", "json")
    assert [e["request"]["url"] for e in json.loads(shown.out)["exchanges"]] == [f"{ipv6_world}/a"] * 5


@pytest.mark.parametrize(("value", "code"), [("hi", 0), ("bye", 1)])
@pytest.mark.parametrize("redirected", ["| true", "<&-", ">&-", "<&- >&- 2>&-"])
def test_the_exit_code_is_the_verdict_whatever_becomes_of_the_streams(
    tmp_path: Path, value: str, code: int, redirected: str
) -> None:
    write_config(
        tmp_path,
        agent={"type": "command", "start": "cat"},
        golden_prompts=["hi"],
        invariants=[{"type": "contains", "value": value}],
    )
    script = f'{{ "$0" run --prompt 0; echo $? >code; }} {redirected}'
    env = clean_env({"PYTHONUNBUFFERED": "1"})
    subprocess.run(
        ["sh", "-c", script, str(FLAKESTORM)], cwd=tmp_path, env=env, capture_output=True, timeout=60, check=False
    )
    assert int((tmp_path / "code").read_text()) == code


@pytest.mark.skipif(sys.platform == "win32", reason="a folder that somebody is in cannot be removed there")
@pytest.mark.parametrize("words", ["profiles", "report", "contract run -c ../flakestorm.yaml", "init"])
def test_a_folder_that_was_removed_under_its_user_is_named_as_the_trouble(tmp_path: Path, words: str) -> None:
    (tmp_path / "gone").mkdir()
    script = f'cd gone && rmdir ../gone && exec "$0" {words}'
    done = subprocess.run(
        ["sh", "-c", script, str(FLAKESTORM)],
        cwd=tmp_path, env=clean_env(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("error: ")) == (2, 1), done.stderr
    assert "internal" not in done.stderr


def test_tools_of_an_ipv6_world_are_named_and_broken_by_url(tmp_path: Path, ipv6_world: str) -> None:
    (tmp_path / "agent.py").write_text(f"import httpx\nprint(httpx.get('{ipv6_world}/a').status_code)")
    write_config(
        tmp_path,
        agent={"type": "command", "start": [sys.executable, "agent.py"]},
        boundary={"tools": {"six": f"{ipv6_world}/a*"}},
        contract={
            "name": "c",
            "invariants": [{"id": "broken", "type": "contains", "value": "503"}],
            "chaos_matrix": [
                {"name": "by name", "tool_faults": [{"tool": "six", "mode": "error"}]},
                {"name": "by url", "tool_faults": [{"tool": "*", "match_url": f"{ipv6_world}/*", "mode": "error"}]},
            ],
        },
    )
    done = flakestorm(tmp_path, "contract", "run", report=True)
    assert done.code == 0, done.out
    assert [run["faults"]["fired"][0]["site"] for run in done.report["runs"] if run["faults"]["planned"]] == [
        "tool/six#1", "tool/six#1",
    ]  # fmt: skip


@pytest.mark.parametrize(("start", "seen"), [("cat", False), ([sys.executable, "agent.py"], True)])
def test_rules_about_calls_that_passed_because_nothing_was_seen_are_named(
    tmp_path: Path, ipv6_world: str, start: object, seen: bool
) -> None:
    (tmp_path / "agent.py").write_text(f"import httpx\nprint(httpx.get('{ipv6_world}/a').text)")
    write_config(
        tmp_path,
        agent={"type": "command", "start": start},
        invariants=[{"id": "no-charge", "type": "tool_not_called", "tool": "charge"}, {"type": "completes"}],
    )
    done = flakestorm(tmp_path, "run", "--prompt", "0", report=True)
    assert done.code == 0, done.err
    assert done.report is not None
    notes = [note for note in done.report["notes"] if "no-charge passed only because nothing was seen" in note]
    assert bool(notes) is not seen
