import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flakestorm.boundary.mcp_servers import WRAPPER
from flakestorm.boundary.mcp_stdio import find_gateway, name_of, outside
from gateway_support import Held, held
from mcp_support import PLAIN, Run

PATIENCE_S = 60


class Program:
    """A wrapped server, and its client, which is the test."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process, self._key = process, 0

    def say(self, **document: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **document}).encode() + b"\n")

    async def line(self) -> bytes:
        assert self.process.stdout is not None
        return await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S)

    async def hear(self) -> Any:
        return json.loads(await self.line())

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        self._key += 1
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": self._key}}
        self.say(id=self._key, method="tools/call", params=params)
        return await self.hear()

    async def end(self) -> tuple[int, bytes]:
        """Close its input; its exit code and what it wrote to stderr."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.ended()

    async def ended(self) -> tuple[int, bytes]:
        assert self.process.stderr is not None
        err = await asyncio.wait_for(self.process.stderr.read(), PATIENCE_S)
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S), err


@asynccontextmanager
async def started(*arguments: str, **env: str) -> AsyncIterator[Program]:
    clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(WRAPPER), *arguments, env=clean | env, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    program = Program(process)
    try:
        yield program
    finally:
        if process.returncode is None:
            process.kill()
        await program.end()


def server(gate: Held | None, *more: str) -> tuple[str, ...]:
    way = () if gate is None else ("--gateway", gate.url, "--name", "w")
    return (*way, "--", sys.executable, "-I", str(PLAIN), *more)


def text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


async def test_a_wrapped_server_answers_and_is_recorded() -> None:
    run = Run(({"tool": "echo", "mode": "error", "calls": [2]},))
    async with held(run.pipeline) as gate, started(*server(gate)) as program:
        program.say(id="i", method="initialize", params={})
        assert (await program.hear())["result"]["serverInfo"]["name"] == "plain"
        program.say(method="notifications/initialized")
        assert text(await program.call("echo", text="å\u2028")) == "å\u2028"
        assert text(await program.call("echo", text="b")) == "Error: 503 Service Unavailable"
        assert await program.end() == (0, b"notifications/initialized\n")
    assert run.names == ["initialize", "notifications/initialized", "echo", "echo"]
    assert {exchange.url for exchange in run.exchanges} == {"stdio://w"}


async def test_progress_and_the_servers_own_requests_pass() -> None:
    run = Run()
    async with held(run.pipeline) as gate, started(*server(gate)) as program:
        assert (await program.call("slow"))["method"] == "notifications/progress"
        assert text(await program.hear()) == "done"
        assert (await program.call("ask"))["method"] == "sampling/createMessage"
        program.say(id="mine", result={"role": "assistant"})
        assert json.loads(text(await program.hear())) == {"role": "assistant"}
        assert await program.end() == (0, b"")
    assert run.names == ["slow", "ask", "sampling/createMessage"]


async def test_what_is_no_message_passes_as_it_is() -> None:
    async with held() as gate, started(*server(gate)) as program:
        program.say(id=1, method="tools/call", params={"name": "noise"})
        assert await program.line() == b"this is no JSON\n"
        assert text(await program.hear()) == "done"


async def test_messages_of_any_size_pass() -> None:
    async with held() as gate, started(*server(gate)) as program:
        large = "x" * 5_000_000
        program.say(id=1, method="tools/call", params={"name": "echo", "arguments": {"text": large}})
        assert program.process.stdout is not None
        answer = bytearray()
        while not answer.endswith(b"\n"):
            answer += await program.process.stdout.read(1 << 20)
        assert text(json.loads(answer)) == large


async def test_a_server_that_ends_by_itself_fails_its_calls_and_gives_its_code() -> None:
    run = Run()
    async with held(run.pipeline) as gate, started(*server(gate)) as program:
        failed = await program.call("die")
        assert "exit code 7" in failed["error"]["message"]
        assert await program.ended() == (7, b"")
    assert run.named("die").reply.end == "broken"


async def test_a_signal_ends_the_server_too() -> None:
    async with held() as gate, started(*server(gate)) as program:
        await program.call("echo", text="")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == (143, b"")


async def test_a_signal_in_the_middle_of_a_write_ends_it_as_well() -> None:
    async with held() as gate, started(*server(gate)) as program:
        large = "x" * 5_000_000
        program.say(id=1, method="tools/call", params={"name": "echo", "arguments": {"text": large}})
        assert program.process.stdout is not None
        assert await asyncio.wait_for(program.process.stdout.read(1), PATIENCE_S)  # far more is to come: it must wait
        program.process.send_signal(signal.SIGTERM)
        _, ended = await asyncio.gather(program.process.stdout.read(), program.ended())
        assert ended == (143, b"")


async def test_with_the_gateway_goes_the_server() -> None:
    async with held() as gate, started(*server(gate)) as program:
        await program.call("echo", text="")
        await gate.gateway.close()
        code, err = await program.ended()
        assert (code, b"gateway has gone" in err) == (3, True)


async def test_without_a_gateway_it_is_the_server() -> None:
    async with started(*server(None)) as program:
        assert text(await program.call("environment", name="HOME")) == os.environ.get("HOME", "unset")
        assert await program.end() == (0, b"")


async def test_a_gateway_is_found_in_the_environment() -> None:
    run = Run()
    async with held(run.pipeline) as gate:
        env = dict(gate.channel.env)
        async with started(*server(None), **env) as program:
            await program.call("echo", text="")
            for name in ("HTTPS_PROXY", "FLAKESTORM_RUN", "PYTHONPATH", "NO_PROXY"):
                assert text(await program.call("environment", name=name)) == "unset"
            assert text(await program.call("environment", name="ANTHROPIC_BASE_URL")) == "https://api.anthropic.com"
    assert run.exchanges[0].url == f"stdio://{PLAIN.name}"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system does not show environments")
async def test_a_gateway_is_found_in_the_environments_of_what_started_it() -> None:
    run = Run()
    client = (
        "import os, subprocess, sys; sys.exit(subprocess.run(sys.argv[1:],"
        " env={'PATH': os.environ.get('PATH', '')}).returncode)"
    )
    async with held(run.pipeline) as gate:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", client, sys.executable, "-I", str(WRAPPER), *server(None),
            env=dict(os.environ) | {"FLAKESTORM_GATEWAY": gate.url}, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        program = Program(process)
        assert text(await program.call("echo", text="found")) == "found"
        assert (await program.end())[0] == 0
    assert run.names == ["echo"]


def test_no_gateway_is_no_gateway() -> None:
    assert find_gateway({"FLAKESTORM_GATEWAY": "http://127.0.0.1:1/r/T"}) == "http://127.0.0.1:1/r/T"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--gateway", "http://127.0.0.1:1/r/T", "--", "true"), 3, b"cannot be reached"),
        (("--", "/no/such/server"), 127, b"cannot be started"),
        (("--gateway", "http://127.0.0.1:1/r/T"), 2, b"no server to run"),
    ],
)
async def test_what_cannot_be_done_is_said(arguments: tuple[str, ...], code: int, words: bytes) -> None:
    async with started(*arguments) as program:
        ended, err = await program.ended()
    assert (ended, words in err) == (code, True)


async def test_a_run_that_is_over_refuses_and_a_missing_server_is_named() -> None:
    async with held() as gate:
        root = gate.url.rpartition("/")[0]
        async with started("--gateway", f"{root}/old", "--", sys.executable, "-I", str(PLAIN)) as program:
            code, err = await program.ended()
            assert (code, b"unknown run token" in err) == (3, True)
        async with started("--gateway", gate.url, "--", "/no/such/server") as program:
            program.say(id=1, method="initialize", params={})
            code, err = await program.ended()
            assert (code, b"/no/such/server" in err) == (127, True)


async def test_a_server_that_nothing_is_asked_of_is_not_started(tmp_path: Path) -> None:
    mark, touch = tmp_path / "started", "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()"
    run = Run(({"tool": "echo", "mode": "error"},))
    async with held(run.pipeline) as gate:
        async with started("--gateway", gate.url, "--", sys.executable, "-c", touch, str(mark)) as program:
            assert text(await program.call("echo", text="")) == "Error: 503 Service Unavailable"
            assert await program.end() == (0, b"")
        assert not mark.exists()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"], "server-filesystem"),
        (["/usr/bin/python3.11", "-m", "weather"], "weather"),
        (["uv", "run", "server.py"], "server.py"),
        (["./weather-server"], "weather-server"),
        (["python"], "python"),
    ],
)
def test_a_server_is_called_by_its_own_name(command: list[str], expected: str) -> None:
    assert name_of(command) == expected


def test_the_servers_environment_is_that_of_before() -> None:
    gateway = "http://127.0.0.1:9/r/T"
    env = {
        "OPENAI_BASE_URL": f"{gateway}/p/openai/v1",
        "OPENAI_API_BASE": f"{gateway}/p/openai1",
        "HTTP_PROXY": "http://x:T@127.0.0.1:9",
        "FLAKESTORM_MCP_W": f"python mcp_stdio.py --gateway {gateway}",
        "FLAKESTORM_GATEWAY": gateway,
        "FLAKESTORM_RUN": "T",
        "NO_PROXY": "",
        "PYTHONPATH": os.pathsep.join(("/shim", "/mine")),
        "HOME": "/home/me",
    }
    origins = {"openai": "https://api.openai.com", "openai1": "http://localhost:1234"}
    assert outside(env, gateway, origins, "/shim") == {
        "OPENAI_BASE_URL": "https://api.openai.com/v1",
        "OPENAI_API_BASE": "http://localhost:1234",
        "PYTHONPATH": "/mine",
        "HOME": "/home/me",
    }
