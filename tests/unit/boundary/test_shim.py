"""The shim as a good guest: it starts cheaply, hands over, and never breaks the program it is in."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flakestorm.boundary.channel import SHIM
from flakestorm.boundary.draws import Dial
from flakestorm.boundary.mcp_servers import WRAPPER
from flakestorm.core.draws import Draws

FILES = [*sorted(SHIM.rglob("*.py")), WRAPPER]  # the wrapper of MCP servers runs in the agent's world too


def python(code: str, *, path: list[Path | str] | None = None, gateway: str | None = "http://127.0.0.1:9/r/T") -> str:
    """Run a program under the shim; its stdout and stderr together."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("FLAKESTORM", "PYTHON"))}
    env["PYTHONPATH"] = os.pathsep.join(str(entry) for entry in [SHIM, *(path or [])])
    if gateway is not None:
        env["FLAKESTORM_GATEWAY"] = gateway
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_is_python_3_8_and_standard_library_only(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 8))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            # urllib3 only where urllib3 itself is being patched
            assert name.partition(".")[0] in sys.stdlib_module_names | {"urllib3"}, f"{file.name} imports {name}"


def test_start_up_imports_no_library_and_next_to_nothing() -> None:
    """A Python that starts is not slowed down: what is loaded with the shim and not without it is the shim itself."""
    listing = "import sys; print(*sorted(sys.modules))"
    bare, shimmed = set(python(listing, gateway=None).split()), set(python(listing).split())
    extra = {name for name in shimmed - bare if not name.startswith("flakestorm_shim")}
    assert extra == set()
    assert {"flakestorm_shim", "flakestorm_shim.hooks"} <= shimmed
    assert "flakestorm_shim.on_http_client" not in shimmed


def test_without_a_gateway_it_does_nothing() -> None:
    assert python("import sys; print('flakestorm_shim' in sys.modules)", gateway=None).strip() == "False"


def test_the_next_sitecustomize_is_run(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.handed_over = __file__\n")
    code = "import sys, sitecustomize; print(sys.handed_over == sitecustomize.__file__)"
    assert python(code, path=[tmp_path]).strip() == "True"
    assert python(code, path=[tmp_path], gateway=None).strip() == "True"


def test_a_library_that_cannot_be_patched_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("HTTPTransport = None\nVALUE = 1\n")
    said = python("import httpx; print(httpx.VALUE)", path=[tmp_path])
    assert said.startswith("1\n")
    assert said.count("\n") == 2
    assert "flakestorm: httpx is left as it is" in said


def test_a_library_that_is_not_there_stays_an_import_error(tmp_path: Path) -> None:
    code = """
import sys
sys.path = [entry for entry in sys.path if "site-packages" not in entry]
for name in ("httpx", "httpx"):
    try:
        __import__(name)
    except ImportError as error:
        print(error)
"""
    assert python(code) == "No module named 'httpx'\n" * 2


def test_a_patched_library_looks_untouched() -> None:
    code = """
import inspect, importlib.util, http.client
loader = http.client.__loader__
assert type(loader).__module__ == "_frozen_importlib_external", type(loader)
assert http.client.__spec__.loader is loader
assert "def putrequest" in inspect.getsource(http.client)
assert http.client.HTTPConnection.connect.__name__ == "connect"
import importlib
importlib.reload(http.client)
print("ok")
"""
    assert python(code).strip() == "ok"


def test_what_is_imported_already_is_patched_at_once(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("")
    code = """
import sys
sys.path.remove(SHIM)
import http.client
before = http.client.HTTPConnection.putrequest
sys.path.insert(0, SHIM)
import flakestorm_shim
flakestorm_shim.start("http://127.0.0.1:9/r/T")
flakestorm_shim.start("http://127.0.0.1:9/r/T")
print(http.client.HTTPConnection.putrequest is not before)
""".replace("SHIM", repr(str(SHIM)))
    assert python(code, gateway=None).strip() == "True"


@pytest.mark.parametrize(
    "code",
    [
        "import httpx\n"
        "c = httpx.Client(transport=httpx.MockTransport(lambda r: httpx.Response(200, text=str(r.url))))\n"
        "print(c.get('https://x.example/a').text)",
        "import http.client, socket\n"
        "class Unix(http.client.HTTPConnection):\n"
        "    def connect(self):\n"
        "        self.sock, other = socket.socketpair()\n"
        "        other.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\n'); self.other = other\n"
        "c = Unix('x.example'); c.request('GET', '/a'); c.getresponse()\n"
        "print('https://x.example/a' if c.other.recv(9) == b'GET /a HT' else 'changed')",
    ],
    ids=["mock-transport", "own-connect"],
)
def test_what_is_not_the_network_is_left_alone(code: str) -> None:
    assert python(code).strip() == "https://x.example/a"


def test_paths_on_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shim writes what route.py reads."""
    from flakestorm.boundary.route import locate

    monkeypatch.syspath_prepend(str(SHIM))
    from flakestorm_shim.gate import Gate, patience  # type: ignore[import-not-found]  # it lives on the agent's path

    gate = Gate("http://127.0.0.1:9/r/T")
    for scheme, authority, target in (("https", "h", "/a%2Fb?c=d"), ("http", "[::1]:8080", "/"), ("http", "h:1", "")):
        path = gate.path(scheme, authority, target)
        assert locate("GET", path, None, ()).url == f"{scheme}://{authority}{target or '/'}"
        assert gate.url(scheme, authority, target) == f"http://127.0.0.1:9{path}"
    assert gate.owns("127.0.0.1", 9)
    assert gate.owns("localhost", 9)
    assert not gate.owns("127.0.0.1", 80)
    assert [patience(value) for value in (1.5, 2, None, 0, -1, True, "3", float("inf"), 0.0001)] == [
        "1500", "2000", None, None, None, None, None, None, "1",
    ]  # fmt: skip


def drawing(code: str, dial: Dial, *lines: Callable[[], None]) -> list[str]:
    """What a program prints under virtual draws; before it reads its n-th line, the n-th of these was called."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("FLAKESTORM", "PYTHON"))}
    env |= {**dial.variables, "PYTHONPATH": str(SHIM), "FLAKESTORM_GATEWAY": "http://127.0.0.1:9/r/T"}
    words = [sys.executable, "-u", "-c", code]
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        said = []
        for line in lines:
            line()
            running.stdin.write("go\n")
            running.stdin.flush()
            said.append(running.stdout.readline().strip())
        rest, _ = running.communicate(timeout=60)
    dial.close()
    return [*said, *rest.splitlines()]


def test_each_run_of_a_server_begins_anew() -> None:
    code = """
import sys, threading, time, uuid
def answer():
    found.append(f"{uuid.uuid4()} {time.time()}")
for line in sys.stdin:
    found = []
    threads = [threading.Thread(target=answer) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    print(uuid.uuid4(), time.time(), *found)
"""
    dial, one, other = Dial(Draws(1, 1_700_000_000_000)), Draws(5, 1_600_000_000_000), Draws(6, 1_500_000_000_000)
    moved = [lambda: dial.begin(one), lambda: dial.show(7000), lambda: dial.begin(one), lambda: dial.begin(other)]
    first, second, again, third = drawing(code, dial, *moved)
    assert again == first != second
    assert {word for word in first.split() if "." in word} == {"1600000000.0"}
    assert {word for word in second.split() if "." in word} == {"1600000000.007"}
    assert not set(third.split()) & set(first.split())


def test_processes_of_one_agent_draw_each_their_own() -> None:
    code = """
import os, subprocess, sys, uuid
print(uuid.uuid4())
one = "import uuid; print(uuid.uuid4())"
for _ in range(2):
    print(subprocess.run([sys.executable, "-c", one], capture_output=True, text=True).stdout.strip())
child = os.fork()
if not child:
    print(uuid.uuid4())
    os._exit(0)
os.waitpid(child, 0)
print(uuid.uuid4())
"""
    first, second = (drawing(code, Dial(Draws(1, 1_700_000_000_000))) for _ in range(2))
    assert first == second
    assert len(set(first)) == 5


def test_without_its_file_the_clock_stands_still_and_draws_are_seeded() -> None:
    code = "import time, uuid; print(time.time(), uuid.uuid4())"
    env = {key: value for key, value in os.environ.items() if not key.startswith(("FLAKESTORM", "PYTHON"))}
    env |= {"FLAKESTORM_DRAWS": "1:1700000000000:/nowhere/x.dial", "FLAKESTORM_GATEWAY": "http://127.0.0.1:9/r/T"}
    env["PYTHONPATH"] = str(SHIM)
    runs = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.startswith("1700000000.0 ")
    assert "/nowhere/x.dial cannot be read" in runs[0].stderr
    env["FLAKESTORM_DRAWS"] = "nonsense"
    real = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert "clock, uuid and random are real" in real.stderr
    assert not real.stdout.startswith("1700000000.0 ")


def lanes_of(code: str, *lines: Callable[[], None], dial: Dial | None = None) -> list[str]:
    """As `drawing`, of a program that can ask `lane()`; what names its processes is left out."""
    found = drawing(f"from flakestorm_shim.gate import lane\n{code}", dial or Dial(None), *lines)
    return [re.sub(r"\b\d+-", "", line) for line in found]


def test_lanes_are_named_by_who_started_them_and_what_a_library_starts_is_not_counted() -> None:
    code = """
import asyncio, threading, flakestorm_shim.gate as gate
from concurrent.futures import ThreadPoolExecutor
from flakestorm_shim.descent import busy
gate.Gate("http://127.0.0.1:9/r/T")
with ThreadPoolExecutor(1) as pool:
    print(lane(), *pool.map(lambda _: lane(), range(3)), pool.submit(pool.submit, lane).result().result())
thread = threading.Thread(target=lambda: print(lane()))
thread.start()
thread.join()
async def one():
    return lane()
async def deep(left):
    return lane() if not left else await asyncio.create_task(deep(left - 1))
async def main():
    with busy():
        other = await asyncio.gather(one(), one())
    loop = asyncio.get_running_loop()
    called = loop.create_future()
    loop.call_soon(lambda: called.set_result(asyncio.ensure_future(one())))
    print(lane(), *await asyncio.gather(one(), one()), *other, await (await called))
    print(len(await deep(100)) < 250, await deep(100) == await deep(100))
asyncio.run(main())
asyncio.run(main())
"""
    pool, thread, *mains = lanes_of(code)
    assert pool == "1 1.job1 1.job2 1.job3 1.job4.job1"
    assert thread == "1.thread1"
    root, *rest = mains[0].split()
    assert (root, rest[:2]) == ("1", ["1.task1", "1.task2"])
    assert not [other for other in rest[2:] if "." in other]
    assert mains[1] == mains[3] == "True False"
    assert mains[2].split()[:2] == ["1", "1.task6"]


def test_each_run_counts_its_lanes_anew_and_a_forked_process_has_its_own() -> None:
    code = """
import os, sys, threading, flakestorm_shim.gate as gate
gate.Gate("http://127.0.0.1:9/r/T")
for line in sys.stdin:
    found = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: found.append(lane()))
        thread.start()
        thread.join()
    print(*found)
here = lane()
child = os.fork()
if not child:
    print(lane() != here, lane().partition("-")[0] == str(os.getpid()))
    os._exit(0)
os.waitpid(child, 0)
"""
    dial = Dial(None)
    *runs, forked = lanes_of(code, lambda: dial.begin(None), lambda: dial.begin(None), dial=dial)
    assert [re.sub(r"^\d+|(?<= )\d+", "N", run) for run in runs] == ["N.thread1 N.thread2"] * 2
    assert forked == "True True"


def test_tasks_that_take_turns_within_a_thread_unseen_are_nobody_s_lane() -> None:
    code = """
import trio, flakestorm_shim.gate as gate
gate.Gate("http://127.0.0.1:9/r/T")
async def main():
    print(lane())
trio.run(main)
print(lane())
"""
    assert lanes_of(code) == ["None", "1"]


def test_a_coroutine_given_to_another_thread_s_loop_belongs_to_who_gives_it() -> None:
    code = """
import asyncio, threading, flakestorm_shim.gate as gate
from concurrent.futures import ThreadPoolExecutor
gate.Gate("http://127.0.0.1:9/r/T")
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
async def one():
    return lane()
with ThreadPoolExecutor(1) as pool:
    print(*pool.map(lambda _: asyncio.run_coroutine_threadsafe(one(), loop).result(), range(2)))
"""
    assert lanes_of(code) == ["1.job1.task1 1.job2.task1"]
