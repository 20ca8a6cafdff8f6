"""Agents with hard-coded https URLs, in any language: recorded, named, broken; and what cannot be is said."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e_support import LONG_ANSWER, PROGRAMS, Done, flakestorm, world, write_config
from tls_support import Private
from upstream import Upstream

PYTHON = [sys.executable, "-I", str(PROGRAMS / "hard_coded.py")]
START = {
    "curl": ["sh", str(PROGRAMS / "hard_coded.sh")],
    "node": ["node", str(PROGRAMS / "hard_coded.mjs")],
    "urllib": [*PYTHON, "urllib"],
    "requests": [*PYTHON, "requests"],
    "openai": [*PYTHON, "openai"],
}
DOWN = {"name": "down", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]}


@pytest.fixture
def private(tmp_path: Path) -> Private:
    return Private(tmp_path)


@pytest.fixture
def up(private: Private) -> Iterator[Upstream]:
    with world(private.server()) as it:
        yield it


def judge(
    folder: Path, up: Upstream, client: str, *scenarios: dict[str, Any], env: dict[str, str], **caller: str
) -> Done:
    if shutil.which(START[client][0]) is None:
        pytest.skip(f"there is no {START[client][0]} here")
    write_config(
        folder,
        agent={
            "type": "command",
            "endpoint": "unused",
            "start": START[client],
            "env": {"API": up.url, "TMPDIR": str(folder), **env},
        },
        boundary={"tools": {"search": "*/search*"}},
        contract={
            "name": "booking",
            "invariants": [{"id": "answers", "type": "output_not_empty", "severity": "critical"}],
            "chaos_matrix": list(scenarios),
        },
        advanced={"seed": 42},
    )
    return flakestorm(folder, "contract", "run", report=True, env=caller)


@pytest.mark.parametrize("client", START)
def test_calls_are_seen_and_broken_wherever_they_come_from(
    tmp_path: Path, private: Private, up: Upstream, client: str
) -> None:
    done = judge(tmp_path, up, client, {"name": "calm"}, DOWN, env={"SSL_CERT_FILE": private.file})
    assert done.code == 0, done.err
    calm, down = done.run("calm"), done.run("down")
    assert calm["output"] == LONG_ANSWER
    assert calm["calls"] == {"llm": 1, "tool": 1, "mcp": 0, "http": 0}
    assert down["output"].startswith("search is unavailable")
    assert "503" in down["output"]
    assert [(f["site"], f["mode"]) for f in down["faults"]["fired"]] == [("tool/search#1", "error")]
    assert (up.count("/search"), up.count("/v1/chat/completions")) == (1, 1)
    tape = flakestorm(tmp_path, "tapes", "show", str(tmp_path / "out" / calm["tape"])).out
    assert "llm/gpt-4o#1" in tape
    assert f"{up.url}/v1/chat/completions" in tape


@pytest.mark.parametrize("client", ["curl", "node"])
def test_an_upstream_that_cannot_be_trusted_fails_in_the_agents_hands(
    tmp_path: Path, up: Upstream, client: str
) -> None:
    done = judge(tmp_path, up, client, {"name": "calm"}, env={})
    output = done.run("calm")["output"]
    assert output.startswith("search is unavailable")
    assert f"the certificate of {up.url} is not accepted: unable to get local issuer certificate" in output
    assert up.count() == 0


@pytest.mark.parametrize(("client", "variable"), [("curl", "CURL_CA_BUNDLE"), ("node", "NODE_EXTRA_CA_CERTS")])
def test_an_agent_that_refuses_the_certificate_is_named(
    tmp_path: Path, private: Private, up: Upstream, client: str, variable: str
) -> None:
    """The program insists on what it trusts, whatever it was told."""
    stubborn = tmp_path / "stubborn.sh"
    stubborn.write_text(f'#!/bin/sh\nexport {variable}={private.file}\nunset SSL_CERT_FILE\nexec "$@"\n')
    start, START[client] = START[client], ["sh", str(stubborn), *START[client]]
    try:
        done = judge(tmp_path, up, client, {"name": "calm"}, env={"SSL_CERT_FILE": private.file})
    finally:
        START[client] = start
    run = done.run("calm")
    (remark,) = run["remarks"]
    assert f"127.0.0.1:{up.port}" in remark
    assert "interception certificate" in remark
    assert done.report is not None
    assert any(remark in note for note in done.report["notes"])
    tape = flakestorm(tmp_path, "tapes", "show", str(tmp_path / "out" / run["tape"])).out
    assert "interception certificate" in tape
    assert up.count() == 0


def without_the_extra(folder: Path, private: Private) -> dict[str, str]:
    blocked = folder / "blocked"
    blocked.mkdir()
    (blocked / "trustme.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join(filter(None, (str(blocked), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, "SSL_CERT_FILE": private.file}


@pytest.mark.parametrize("client", ["curl", "node"])
def test_without_the_extra_tunnels_stay_closed_and_the_report_says_so(
    tmp_path: Path, private: Private, up: Upstream, client: str
) -> None:
    caller = without_the_extra(tmp_path, private)
    trusted = {"CURL_CA_BUNDLE": private.file, "NODE_EXTRA_CA_CERTS": private.file}
    done = judge(tmp_path, up, client, {"name": "calm"}, DOWN, env=trusted, **caller)
    assert done.run("calm")["output"] == LONG_ANSWER
    said = f"127.0.0.1:{up.port} was called through a TLS tunnel, and looking into it needs the extra 'mitm'"
    assert done.report is not None
    assert any(note.startswith(said) for note in done.report["notes"])
    assert "pip install 'flakestorm[mitm]'" in " ".join(done.out.split())
    tape = flakestorm(tmp_path, "tapes", "show", str(tmp_path / "out" / done.run("calm")["tape"])).out
    assert "what passed inside this tunnel was not seen" in tape
    verified = flakestorm(tmp_path, "verify", env=caller)
    assert said in verified.out


def test_the_config_in_the_documentation_works(tmp_path: Path, private: Private, up: Upstream) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "hard-coded-https.md"
    (config,) = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    (tmp_path / "flakestorm.yaml").write_text(config.replace("/etc/ssl/private-ca.pem", private.file))
    (tmp_path / "agent.sh").write_text((PROGRAMS / "hard_coded.sh").read_text())
    env = {"API": up.url, "TMPDIR": str(tmp_path)}
    done = flakestorm(tmp_path, "contract", "run", report=True, env=env)
    run = done.run("search-down")
    assert done.code == 0, done.err
    assert run["output"].startswith("search is unavailable: 503")
    assert up.count() == 0
    verified = flakestorm(tmp_path, "verify", env=env)
    assert "boundary: 1 llm, 1 tool" in verified.out
    assert up.count() == 2
