"""`flakestorm verify`: what it says of agents in this process, launched and elsewhere."""

import json
import sys

import pytest

from e2e_support import sdk_agent, world, write_config
from unit_cli import run
from upstream import Upstream, document


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_verify_tells_what_works_and_what_does_not(folder, capsys) -> None:
    with Upstream() as up:
        up.reply("/invoke", document({"output": "hello"}))
        (folder / "flakestorm.yaml").write_text(
            f"agent: {{endpoint: '{up.url}/invoke'}}\ngolden_prompts: [a]\ninvariants: [{{type: completes}}]\n"
        )
        assert run("verify") == 0
        shown = capsys.readouterr().out
        assert "agent: answers" in shown
        assert "no call crossed it" in shown
    assert run("verify") == 3
    assert "not reachable" in capsys.readouterr().out


def in_process(folder, code: str) -> None:
    (folder / "quiet_agent.py").write_text(code)
    (folder / "flakestorm.yaml").write_text(
        "agent: {type: python, endpoint: 'quiet_agent:answer'}\ngolden_prompts: [a]\ninvariants: [{type: completes}]\n"
    )


def test_verify_gives_its_hint_only_where_it_helps(folder, capsys) -> None:
    in_process(folder, "def answer(text):\n    print('noise')\n    return text\n")
    assert run("verify") == 0
    shown = capsys.readouterr()
    assert "no call crossed it" in shown.out
    assert "no fault can reach" not in shown.out
    assert "noise" not in shown.out


def test_verify_obeys_no_escape_sequence_of_an_agent(folder, capsys) -> None:
    in_process(folder, "def answer(text):\n    raise ValueError('\\x1b[2Jgone')\n")
    assert run("verify") == 3
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b[2Jgone" in shown


def said(capsys) -> dict:
    assert run("verify", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "flakestorm-verify/1"
    return found


def test_the_seams_of_an_agent_in_process_are_told_apart(folder, capsys) -> None:
    with Upstream() as up:
        up.reply("/x", document({}))
        code = f"""
import asyncio, aiohttp, httpx, httpx2, requests

def answer(text):
    httpx.get("{up.url}/x")
    httpx2.get("{up.url}/x")
    requests.get("{up.url}/x")
    requests.get("{up.url}/x")
    async def go():
        async with aiohttp.ClientSession() as session:
            async with session.get("{up.url}/x"):
                pass
    asyncio.run(go())
    return text
"""
        in_process(folder, code)
        found = said(capsys)
        assert run("verify") == 0
    counts = {"httpx": 1, "httpx2": 1, "urllib3": 2, "aiohttp": 1}
    assert {name: n for name, n in found["boundary"]["seams"].items() if n} == counts
    assert (found["boundary"]["calls"]["http"], found["boundary"]["variables"], found["reset"]) == (5, {}, "none")
    shown = capsys.readouterr().out
    assert "in process: urllib3 (and requests): 2" in shown
    assert "in process: MCP over stdio: 0" in shown
    assert "gateway, by a provider's variable: 0" in shown


def test_of_a_launched_agent_it_says_where_the_variables_lead_and_no_secret(folder, capsys, monkeypatch) -> None:
    monkeypatch.setenv("GROQ_BASE_URL", "https://user:secretsecret@api.groq.com/openai/v1?api_key=secretsecret")
    with world() as up:
        write_config(folder, agent=sdk_agent(up))
        found = said(capsys)
        assert run("verify") == 0
    boundary = found["boundary"]
    seams = boundary["seams"]  # httpx reads HTTP_PROXY, so its hard-coded URL needs no shim
    assert (seams["base"], seams["proxy"], seams["shim"], seams["httpx"]) == (2, 1, 0, 0)
    assert boundary["variables"]["OPENAI_BASE_URL"] == f"{up.url}/v1"
    assert boundary["variables"]["GOOGLE_GEMINI_BASE_URL"] == "https://generativelanguage.googleapis.com"
    assert boundary["variables"]["GROQ_BASE_URL"].startswith("https://api.groq.com/openai/v1")
    shown = capsys.readouterr().out
    assert f"  OPENAI_BASE_URL -> {up.url}/v1" in shown
    assert "secretsecret" not in shown + json.dumps(found)
    assert found["advice"] == []


def test_of_a_launched_agent_that_is_not_seen_it_says_so(folder, capsys) -> None:
    write_config(folder, agent={"type": "command", "start": [sys.executable, "-c", "print(1)"]})
    (advice,) = said(capsys)["advice"]
    assert "base-URL variable" in advice


def test_clients_that_no_seam_sees_are_named(folder, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets", json)
    in_process(folder, "def answer(text):\n    return text\n")
    assert any(advice.startswith("websockets: ") for advice in said(capsys)["advice"])
