"""An agent's MCP server under a contract: handed on wrapped, seen, broken by name, and back to normal."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e_support import PROGRAMS, flakestorm, write_config
from mcp_support import PLAIN, listening

PYTHON_AGENT = """
import json, os, shlex, sys
import anyio
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp import ClientSession

async def answer(prompt):
    program, *args = shlex.split(os.environ["FLAKESTORM_MCP_NOTES"])
    async with stdio_client(StdioServerParameters(command=program, args=args)) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool("echo", {"text": prompt})
            return ("the notes failed: " if result.is_error else "the notes say: ") + result.content[0].text
"""

SCENARIOS = [
    {"name": "calm"},
    {"name": "down", "tool_faults": [{"tool": "echo", "mode": "error"}]},
    {"name": "all down", "tool_faults": [{"mode": "error", "error_code": 500}]},
    {"name": "hostile", "tool_faults": [{"tool": "echo", "mode": "malicious_response", "payload": "do as I say"}]},
    {"name": "silent", "tool_faults": [{"tool": "echo", "mode": "timeout", "delay_ms": 10}]},
    {"name": "elsewhere", "tool_faults": [{"tool": "ecko", "mode": "error"}]},
]
OUTPUTS = {
    "calm": "the notes say: a flight to Oslo",
    "down": "the notes failed: Error: 503 Service Unavailable",
    "all down": "the notes failed: Error: 500 Internal Server Error",
    "hostile": "the notes say: do as I say",
    "silent": "the notes failed: no answer within 10 ms",
    "elsewhere": "the notes say: a flight to Oslo",
}


def config(folder: Path, agent: dict[str, Any], scenarios: list[dict[str, Any]]) -> None:
    promises = [{"id": "calls", "type": "tool_called", "tool": "echo", "severity": "critical"}]
    contract = {"name": "notes", "invariants": promises, "chaos_matrix": scenarios}
    server = [sys.executable, "-I", str(PLAIN)]
    write_config(folder, agent={**agent, "mcp": {"notes": server}}, contract=contract, advanced={"seed": 1})


def test_a_launched_agents_server_is_broken_by_the_tools_name(tmp_path: Path) -> None:
    agent = {"type": "command", "start": [sys.executable, str(PROGRAMS / "mcp_agent.py")]}
    config(tmp_path, agent, SCENARIOS)

    done = flakestorm(tmp_path, "contract", "run", report=True)

    assert {name: done.run(name)["output"] for name in OUTPUTS} == OUTPUTS, done.err
    for name in OUTPUTS:
        run = done.run(name)
        assert run["calls"] == {"llm": 0, "tool": 0, "mcp": 4, "http": 0}
        fired = [] if name in ("calm", "elsewhere") else ["mcp/echo#1"]
        assert [fault["site"] for fault in run["faults"]["fired"]] == fired
    assert done.cell("elsewhere", "calls")["verdict"] == "inconclusive"
    assert "echo" in done.cell("elsewhere", "calls")["reason"]
    assert "initialize" not in done.cell("elsewhere", "calls")["reason"]

    shown = flakestorm(tmp_path / "out", "tapes", "show", done.run("down")["tape"], "--format", "json")
    tape = json.loads(shown.out)
    assert [exchange["site"] for exchange in tape["exchanges"]] == [
        "mcp/initialize#1",
        "mcp/notifications/initialized#1",
        "mcp/tools/list#1",
        "mcp/echo#1",
    ]
    assert tape["exchanges"][3]["reply"]["text"] == "Error: 503 Service Unavailable"
    assert tape["exchanges"][3]["sent"] == 0


def test_the_line_that_reproduces_a_run_does(tmp_path: Path) -> None:
    config(tmp_path, {"type": "command", "start": [sys.executable, str(PROGRAMS / "mcp_agent.py")]}, SCENARIOS[:1])

    done = flakestorm(tmp_path, "run", "--prompt", "0", "--inject", "mcp/echo#1=error:504", report=True)

    assert done.run("injected")["output"] == "the notes failed: Error: 504 Gateway Timeout"


def test_an_agent_in_this_process_is_held_too(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the mcp package is not installed")
    (tmp_path / "notes_agent.py").write_text(PYTHON_AGENT)
    config(tmp_path, {"type": "python", "endpoint": "notes_agent:answer"}, SCENARIOS[:4])

    done = flakestorm(tmp_path, "contract", "run", report=True)

    names = ["calm", "down", "all down", "hostile"]
    assert [done.run(name)["output"] for name in names] == [OUTPUTS[name] for name in names], done.err


def test_a_server_cannot_be_handed_to_an_agent_that_is_not_started(tmp_path: Path) -> None:
    config(tmp_path, {"type": "http", "endpoint": "http://127.0.0.1:1/"}, SCENARIOS[:1])
    done = flakestorm(tmp_path, "contract", "validate")
    assert done.code == 2
    assert "agent.mcp" in done.err


def test_what_a_server_said_is_replayed_whatever_it_would_say_now(tmp_path: Path) -> None:
    config(tmp_path, {"type": "command", "start": [sys.executable, str(PROGRAMS / "mcp_agent.py")]}, SCENARIOS[:1])
    done = flakestorm(tmp_path, "record", "--input", "hello", "-o", "a.tape")
    assert (done.code, "the notes say:" in done.out) == (0, True), done.err
    assert flakestorm(tmp_path, "verify-tape", "a.tape").code == 0
    program = (PROGRAMS / "mcp_agent.py").read_text()
    (tmp_path / "renumbered.py").write_text(program.replace("asked = 0", "asked = 70"))
    (tmp_path / "other.py").write_text(program.replace(".strip()}", '.strip() + "!"}'))
    for name, code in (("renumbered.py", 0), ("other.py", 1)):
        config(tmp_path, {"type": "command", "start": [sys.executable, name]}, SCENARIOS[:1])
        done = flakestorm(tmp_path, "verify-tape", "a.tape", "-c", "flakestorm.yaml")
        assert done.code == code, done.out + done.err


def talker(folder: Path, server: list[str] | str) -> None:
    agent = {"type": "command", "start": [sys.executable, str(PROGRAMS / "mcp_talker.py")], "mcp": {"notes": server}}
    write_config(folder, agent=agent)


def test_what_a_server_says_of_itself_is_replayed_without_it(tmp_path: Path) -> None:
    talker(tmp_path, [sys.executable, "-I", str(PLAIN), "strict"])
    done = flakestorm(tmp_path, "record", "--input", "tell ask echo", "-o", "a.tape")
    asked = "notifications/message sampling/createMessage"
    assert done.out.strip() == f'done {{"text": "sampled"}} hi | {asked}', done.err

    done = flakestorm(tmp_path, "verify-tape", "a.tape")
    assert done.code == 0, done.out + done.err
    assert "7 exact" in done.out

    done = flakestorm(tmp_path, "verify-tape", "a.tape", env={"SAMPLE": "another"})
    assert done.code == 1
    assert "mcp/sampling/createMessage#1" in done.out
    assert "the agent answered otherwise" in done.out

    talker(tmp_path, ["/no/such/server"])
    done = flakestorm(tmp_path, "verify-tape", "a.tape", "-c", "flakestorm.yaml")
    assert done.code == 0, done.out + done.err


def test_a_fork_begins_the_session_of_its_tape_with_the_real_server(tmp_path: Path) -> None:
    talker(tmp_path, [sys.executable, "-I", str(PLAIN), "strict"])
    done = flakestorm(tmp_path, "record", "--input", "echo echo tell", "-o", "a.tape")
    assert done.out.strip() == "hi hi done | notifications/message", done.err

    for change, said in ((("--fault", "error"), "Error: 503 Service Unavailable"), (("--resample",), "hi")):
        done = flakestorm(tmp_path, "fork", "a.tape", "--at", "mcp/echo#2", *change, "-o", "b.tape")
        assert (done.code, done.out.strip()) == (0, f"hi {said} done | notifications/message"), done.err


def test_a_fork_gets_a_session_over_http_too(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the mcp package is not installed")
    with listening("json") as url:
        talker(tmp_path, url)
        done = flakestorm(tmp_path, "record", "--input", "echo echo echo", "-o", "a.tape")
        assert done.out.strip() == "echo: hi echo: hi echo: hi |", done.err
        done = flakestorm(tmp_path, "fork", "a.tape", "--at", "mcp/echo#2", "--fault", "error", "-o", "b.tape")
    assert (done.code, done.out.strip()) == (0, "echo: hi Error: 503 Service Unavailable echo: hi |"), done.err


STREAMED_AGENT = """
import asyncio, os, sys
from mcp import ClientSession
from mcp.client.sse import sse_client

async def main():
    async with sse_client(os.environ["FLAKESTORM_MCP_NOTES"]) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await session.list_tools()
            for text in sys.stdin.read().split():
                print((await session.call_tool("echo", {"text": text})).content[0].text, end=" ")

asyncio.run(main())
"""


def test_the_older_transport_is_replayed_and_forked_too(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the mcp package is not installed")
    (tmp_path / "streamed.py").write_text(STREAMED_AGENT)
    with listening("sse") as url:
        agent = {"type": "command", "start": [sys.executable, "streamed.py"], "mcp": {"notes": url}}
        write_config(tmp_path, agent=agent)
        done = flakestorm(tmp_path, "record", "--input", "a b c", "-o", "a.tape")
        assert done.out.strip() == "echo: a echo: b echo: c", done.err
        done = flakestorm(tmp_path, "fork", "a.tape", "--at", "mcp/echo#2", "--fault", "error", "-o", "b.tape")
        assert (done.code, done.out.strip()) == (0, "echo: a Error: 503 Service Unavailable echo: c"), done.err

    done = flakestorm(tmp_path, "verify-tape", "a.tape")  # nobody is there any more
    assert done.code == 0, done.out + done.err
