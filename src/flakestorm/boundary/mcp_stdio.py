"""The program that stands between an MCP client and a stdio server: `flakestorm mcp -- COMMAND`.

It lends both pipes to the gateway, passes lines on as the gateway says (the frames are those of `mcp_door.py`), and
starts the server with the first line that is for it: a replay, which a tape answers, has none, and needs no server.
Where no gateway is given it becomes the server itself, and nothing is in between.

A program of its own, standard library only, Python 3.8 or newer: it is started in the agent's world, once per server
and often once per run, and must be there at once. Its way to the gateway stands in its environment, or its arguments;
MCP clients hand few variables on, so where it does not, the environments of the programs that started it are asked.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from shutil import which
from urllib.parse import quote, urlsplit

TYPE_CHECKING = False  # the typing module is not imported: this starts often
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

__all__ = ["find_gateway", "main", "name_of", "outside"]

MAX_LINE_BYTES = 64 * 1024 * 1024
_GRACE_S = 2.0
_ANCESTORS = 16
_RUNNERS = frozenset(
    ("bash", "bun", "bunx", "deno", "env", "exec", "node", "npm", "npx", "pipx", "pnpm", "run", "sh", "uv", "uvx")
)
_UNREACHABLE = 3


def main(argv: list[str] | None = None) -> NoReturn:
    """Never returns; the exit code is the server's."""
    options = _options(argv)
    gateway = options.gateway or find_gateway(os.environ)
    if not gateway:
        _become(options.command)
    try:
        wrapper = _Wrapper(gateway, options.name or name_of(options.command), options.command)
    except OSError as error:
        _fail(f"{error}; the MCP server is not started, because its calls would not be seen", _UNREACHABLE)
    wrapper.run()


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flakestorm mcp",
        usage="flakestorm mcp [--gateway URL] [--name NAME] -- COMMAND [ARG]...",
        description="Run an MCP server so that its calls cross the boundary of the run its agent belongs to.",
    )
    parser.add_argument("--gateway", default="", help="where the run's gateway is; default: what started this knows it")
    parser.add_argument("--name", default="", help="what the server is called in reports; default: its command")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="the server's command line, after --")
    options = parser.parse_args(argv)
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        parser.error("there is no server to run; write its command line after --")
    if options.command[0] in ("python", "python3") and which(options.command[0]) is None:
        options.command[0] = sys.executable
    return options


def find_gateway(env: Mapping[str, str]) -> str:
    """The run's root on the gateway, from this environment or from those of the programs that started this one."""
    pid = os.getpid()
    for _ in range(_ANCESTORS):
        if env.get("FLAKESTORM_GATEWAY"):
            return env["FLAKESTORM_GATEWAY"]
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
            fields = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\0")
        except (OSError, ValueError, IndexError):  # another system, or somebody else's process
            return ""
        env = dict(field.partition("=")[::2] for field in fields if "=" in field)
    return ""


def name_of(command: list[str]) -> str:
    """What to call a server of which only the command line is known: its own name, not that of what runs it."""
    for word in command:
        name = Path(word).name
        if name and not word.startswith("-") and name not in _RUNNERS and not name.startswith("python"):
            return name
    return Path(command[0]).name


def outside(env: Mapping[str, str], gateway: str, origins: Mapping[str, str], shim: str) -> dict[str, str]:
    """The environment as it was before flakestorm led the agent through its gateway: the server is not the agent.

    Args:
        env: what this program was given.
        gateway: the run's root on the gateway.
        origins: what the providers' places on the gateway stand for.
        shim: the folder on PYTHONPATH that is flakestorm's.
    """
    authority = urlsplit(gateway).netloc
    kept = {}
    for name, value in env.items():
        text = value
        for provider, origin in origins.items():
            place = f"{gateway}/p/{provider}"
            if text == place or text.startswith((place + "/", place + "?")):
                text = origin + text[len(place) :]
        if name == "PYTHONPATH":
            text = os.pathsep.join(entry for entry in text.split(os.pathsep) if entry and entry != shim)
        empty = not text and (name == "PYTHONPATH" or name.upper() == "NO_PROXY")
        if not (empty or authority in text or name in ("FLAKESTORM_GATEWAY", "FLAKESTORM_RUN")):
            kept[name] = text
    return kept


class _Wrapper:
    """The server, the gateway, and the lines between them."""

    def __init__(self, gateway: str, name: str, command: list[str]) -> None:
        self._socket, self._frames, origins = _connect(gateway, name)
        self._lock = threading.Lock()
        shim = str(Path(__file__).resolve().parent / "shim")
        self._command, self._env = command, outside(os.environ, gateway, origins, shim)
        self._server: Any = None

    def run(self) -> NoReturn:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        threading.Thread(target=self._from_client, daemon=True).start()
        try:
            code = self._serve()
        except OSError:
            code = None
        if code is None:  # also where the client has gone
            self._end()
            _fail("the gateway has gone, and with it the run this MCP server belonged to", _UNREACHABLE)
        _exit(code)

    def _serve(self) -> int | None:
        """Do what the gateway says; the server's exit code once it has ended, None when the gateway has gone."""
        client = sys.stdout.buffer
        while True:
            frame = self._frames.readline()
            if not frame:
                return None
            kind, line = frame[:1], frame[1:]
            if kind == b"S":
                return _code(int(line))
            if kind == b"c":
                try:
                    client.write(line)
                    client.flush()
                except OSError:
                    self._end()
                    _exit(0)
            elif kind != b"s" and self._server is None:
                self._say(b"S0\n")  # there was none, and now there need not be one
            else:
                server = self._started()
                try:
                    if kind == b"s":
                        server.write(line)
                        server.flush()
                    else:
                        server.close()
                except (OSError, ValueError):
                    continue  # it reads no more; that it has ended is heard from its output

    def _started(self) -> Any:
        """The server's input."""
        if self._server is None:
            try:
                self._server = subprocess.Popen(  # noqa: S603 - running what it is given is its purpose
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._env
                )
            except OSError as error:
                _fail(f"the MCP server {self._command[0]!r} cannot be started: {error}", 127)
            threading.Thread(target=self._from_server, daemon=True).start()
        return self._server.stdin

    def _from_client(self) -> None:
        self._pass(b"c", sys.stdin.buffer)
        self._say(b"C\n")

    def _from_server(self) -> None:
        self._pass(b"s", self._server.stdout)
        self._say(b"S%d\n" % self._server.wait())

    def _pass(self, mark: bytes, source: Any) -> None:
        while True:
            try:
                line = source.readline(MAX_LINE_BYTES)
            except (OSError, ValueError):
                return
            if not line:
                return
            if not line.endswith(b"\n"):
                line += b"\n"
            self._say(mark + line)

    def _say(self, frame: bytes) -> None:
        try:
            with self._lock:
                self._socket.sendall(frame)
        except OSError:
            return  # the main thread hears of it

    def _stop(self, number: int, _frame: object) -> None:
        self._end()
        _exit(128 + number)

    def _end(self) -> None:
        """End the server: its input first, then, if that does not help, itself.

        A signal may have come in the middle of a write to either pipe; then that input cannot be closed in good order.
        """
        if self._server is None:
            return
        with suppress(OSError, ValueError, RuntimeError):
            self._server.stdin.close()
        for more in (self._server.terminate, self._server.kill, None):
            with suppress(subprocess.TimeoutExpired):
                self._server.wait(_GRACE_S)
                return
            if more is not None:
                more()


def _connect(gateway: str, name: str) -> tuple[socket.socket, Any, dict[str, str]]:
    """A connection to the gateway's door, and what its providers' places stand for.

    Raises:
        OSError: there is none to be had; the message says why.
    """
    parts = urlsplit(gateway)
    where = f"{parts.hostname}:{parts.port}"
    try:
        connection = socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), timeout=30)
    except OSError as error:
        raise OSError(f"the gateway at {where} cannot be reached ({error})") from error
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = f"GET {parts.path.rstrip('/')}/m/{quote(name, safe='')} HTTP/1.1\r\nHost: {where}\r\n\r\n"
    connection.sendall(head.encode())
    frames = connection.makefile("rb")
    status = frames.readline(65536).decode("latin-1").split(" ", 2)
    origins, length = {}, 0
    while True:
        field, _, value = frames.readline(65536).decode("latin-1").strip().partition(": ")
        if not field:
            break
        if field.lower() == "x-flakestorm-origin":
            provider, _, origin = value.partition(" ")
            origins[provider] = origin
        elif field.lower() == "content-length":
            length = int(value)
    if status[1:2] != ["200"]:
        said = frames.read(length).decode("utf-8", "replace")
        raise OSError(f"the gateway at {where} refused: {said or ' '.join(status).strip()}")
    return connection, frames, origins


def _become(command: list[str]) -> NoReturn:
    """Be the server; nothing else of this program is left."""
    try:
        os.execvp(command[0], command)  # noqa: S606 - as above, and no shell is wanted
    except OSError as error:
        _fail(f"the MCP server {command[0]!r} cannot be started: {error}", 127)


def _code(code: int) -> int:
    return code if code >= 0 else 128 - code


def _fail(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"flakestorm mcp: {message}\n")
    _exit(code)


def _exit(code: int) -> NoReturn:
    """At once: a thread may be waiting for input that never comes, and a signal may have come in the middle of a write.

    All that is written is flushed where it is written.
    """
    os._exit(code)


if __name__ == "__main__":
    main()
