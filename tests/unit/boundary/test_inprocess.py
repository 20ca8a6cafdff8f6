"""Putting the seams in and taking them out."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import httpx
import httpx2
import pytest
import urllib3.connectionpool

from flakestorm.boundary import inprocess
from flakestorm.boundary.seams import threads
from flakestorm.boundary.seams.patches import Patch
from flakestorm.boundary.session import Crossing
from flakestorm.core.call import Call
from flakestorm.core.pipeline import Flow, chain

PATCHED = [
    (httpx.HTTPTransport, "handle_request"),
    (httpx.AsyncHTTPTransport, "handle_async_request"),
    (httpx2.HTTPTransport, "handle_request"),
    (httpx2.AsyncHTTPTransport, "handle_async_request"),
    (aiohttp.ClientSession, "_request"),
    (urllib3.connectionpool.HTTPConnectionPool, "_make_request"),
    (threading.Thread, "start"),
    (ThreadPoolExecutor, "submit"),
]


def _attributes() -> list[object]:
    return [vars(owner)[name] for owner, name in PATCHED]


def test_install_wraps_and_uninstall_restores_exactly() -> None:
    before = _attributes()
    inprocess.install()
    try:
        during = _attributes()
    finally:
        inprocess.uninstall()
    assert all(now is not then for now, then in zip(during, before, strict=True))
    assert all(now is then for now, then in zip(_attributes(), before, strict=True))


def test_installs_are_counted() -> None:
    before = _attributes()
    with inprocess.held():
        once = _attributes()
        with inprocess.held():
            assert _attributes() == once
        assert _attributes() == once
    assert _attributes() == before


def test_uninstall_without_install_does_nothing() -> None:
    before = _attributes()
    inprocess.uninstall()
    with inprocess.held():
        assert _attributes() != before
    assert _attributes() == before


def test_wrappers_keep_the_originals_names() -> None:
    before = [getattr(attribute, "__name__", None) for attribute in _attributes()]
    with inprocess.held():
        assert [getattr(attribute, "__name__", None) for attribute in _attributes()] == before


def test_another_tools_wrapper_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    original = vars(httpx.HTTPTransport)["handle_request"]
    with inprocess.held():
        ours = vars(httpx.HTTPTransport)["handle_request"]

        def theirs(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            return ours(self, request)

        monkeypatch.setattr(httpx.HTTPTransport, "handle_request", theirs)
    assert vars(httpx.HTTPTransport)["handle_request"] is theirs
    monkeypatch.undo()
    httpx.HTTPTransport.handle_request = original  # type: ignore[method-assign]


def test_a_call_crosses_once_however_often_it_was_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    original = vars(httpx.HTTPTransport)["handle_request"]
    calls: list[Call] = []

    def stage(call: Call) -> Flow:
        calls.append(call)
        return (yield call)

    def world(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(b"ok"))

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", world)
    with inprocess.held():
        ours = vars(httpx.HTTPTransport)["handle_request"]
        monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda self, request: ours(self, request))
    with inprocess.held(), Crossing("r-1", chain(stage)).active(), httpx.Client(verify=False) as client:
        assert client.get("http://agents.invalid/").content == b"ok"
    monkeypatch.undo()
    httpx.HTTPTransport.handle_request = original  # type: ignore[method-assign]
    assert len(calls) == 1


def test_a_failing_install_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _attributes()
    broken = Patch(threading.Thread, "no_such_method", lambda original: original)
    good = threads.patches()
    monkeypatch.setattr(inprocess, "_serve", lambda library: broken.apply())
    monkeypatch.setattr(threads, "patches", lambda: good)
    with pytest.raises(AttributeError, match="no_such_method"):
        inprocess.install()
    monkeypatch.undo()
    assert _attributes() == before
    assert not any(type(finder).__name__ == "ImportWatch" for finder in sys.meta_path)


PROGRAM = """
import sys
from flakestorm.boundary import inprocess
inprocess.install()
for name in inprocess.LIBRARIES:
    if name != "aiohttp":
        assert name not in sys.modules, f"{name} was imported"
import httpx, requests, urllib3, httpx2, aiohttp
assert hasattr(httpx.HTTPTransport.handle_request, "__wrapped__")
assert hasattr(httpx2.AsyncHTTPTransport.handle_async_request, "__wrapped__")
assert hasattr(urllib3.connectionpool.HTTPConnectionPool._make_request, "__wrapped__")
assert hasattr(aiohttp.ClientSession._request, "__wrapped__")
assert "exec_module" not in vars(httpx.__loader__)
inprocess.uninstall()
assert not hasattr(httpx.HTTPTransport.handle_request, "__wrapped__")
assert not hasattr(urllib3.connectionpool.HTTPConnectionPool._make_request, "__wrapped__")
print("held")
"""


def test_libraries_are_held_when_the_agent_imports_them_and_never_imported_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("held", "")
