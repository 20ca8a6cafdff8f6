"""`flakestorm gateway`: a boundary on its own, and runs of agents that somebody else started behind it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from e2e_support import FLAKESTORM, clean_env, flakestorm, world, write_config
from flakestorm.tape.reader import Tape
from standing_support import Stands, agent_at, free_port, running, standing
from upstream import Upstream

ASKED = [{"role": "user", "content": "hi"}]


@pytest.fixture
def up() -> Iterator[Upstream]:
    with world() as upstream:
        yield upstream


def origins(up: Upstream) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{up.url}/v1", "ANTHROPIC_BASE_URL": up.url}


@contextmanager
def attended(folder: Path, up: Upstream, *args: str, **env: str) -> Iterator[tuple[Stands, str]]:
    """A gateway in this folder, and an agent that somebody started with its variables."""
    with (
        standing(folder, *args, env=origins(up)) as stands,
        running({**stands.variables, "SEARCH_URL": f"{up.url}/search", **env}) as url,
    ):
        yield stands, url


def contract(up: Upstream, *scenarios: dict[str, Any]) -> dict[str, Any]:
    invariants = [
        {"id": "completes", "type": "completes", "severity": "critical"},
        {"id": "admits", "type": "regex", "pattern": "unavailable|busy", "when": "any_chaos_active"},
        {"id": "quiet", "type": "max_calls", "kind": "llm", "limit": 9},
    ]
    return {
        "boundary": {"tools": {"search": f"{up.url}/search*"}},
        "contract": {"name": "c", "invariants": invariants, "chaos_matrix": list(scenarios)},
    }


SCENARIOS = (
    {"name": "calm"},
    {"name": "search-down", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]},
    {"name": "busy", "llm_faults": [{"mode": "rate_limit"}]},
)


def test_it_prints_the_variables_records_and_stops_cleanly(tmp_path: Path, up: Upstream) -> None:
    port = free_port()
    with standing(tmp_path, "--port", str(port), env=origins(up)) as stands:
        assert all(value.startswith(f"http://127.0.0.1:{port}/r/") for value in stands.variables.values())
        assert {"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_HOST"} <= {*stands.variables}
        client = openai.OpenAI(base_url=stands.variables["OPENAI_BASE_URL"], api_key="k")
        assert client.chat.completions.create(model="gpt-4o", messages=ASKED).choices[0].message.tool_calls  # type: ignore[arg-type]
        client.close()
        assert stands.stop(signal.SIGINT) == 130
    tape = Tape.open(stands.tape)
    tape.verify()
    assert [str(exchange.site) for exchange in tape] == ["llm/gpt-4o#1"]
    assert f"recording on {stands.tape}" in stands.err
    assert "1 call on" in stands.err
    assert [left.name for left in (tmp_path / ".flakestorm").iterdir()] == [".gitignore"]


def test_the_default_tape_is_in_the_store_and_is_listed(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(FLAKESTORM), "gateway"], cwd=tmp_path, env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout and process.stdout.read()
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    (tape,) = (tmp_path / ".flakestorm" / "tapes").iterdir()
    assert str(tape.relative_to(tmp_path)) in err.decode()
    assert tape.name in flakestorm(tmp_path, "tapes").out


def test_a_shell_takes_the_variables_over_in_one_line(tmp_path: Path) -> None:
    script = f'export $("{FLAKESTORM}" gateway -q & echo GATEWAY_PID=$!); echo "$OPENAI_BASE_URL"; kill $GATEWAY_PID'
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=clean_env(), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("http://127.0.0.1:")


def test_a_port_in_use_is_a_clear_error(tmp_path: Path, up: Upstream) -> None:
    done = flakestorm(tmp_path, "gateway", "--port", str(up.port))
    assert (done.code, done.out) == (2, "")
    assert f"127.0.0.1:{up.port}" in done.err
    assert "choose another port" in done.err


def test_what_is_asked_for_wrongly_is_refused(tmp_path: Path) -> None:
    assert flakestorm(tmp_path, "gateway", "--inject", "nonsense").code == 2
    assert "one of them" in flakestorm(tmp_path, "gateway", "--chaos", "--inject", "llm/x#1=empty").err
    assert "no chaos to play" in flakestorm(tmp_path, "gateway", "--chaos").err
    assert "no_such" in flakestorm(tmp_path, "gateway", "--chaos-profile", "no_such").err


@pytest.mark.parametrize(
    "args",
    [("--inject", "tool/search#1=error:503"), ("--chaos",), ("--chaos-profile", "profile.yaml")],
    ids=lambda args: args[0],
)
def test_faults_are_played_on_whoever_passes(tmp_path: Path, up: Upstream, args: tuple[str, ...]) -> None:
    faults = {"tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]}
    write_config(tmp_path, agent={"endpoint": "http://127.0.0.1:1/"}, chaos=faults, **contract(up, {"name": "calm"}))
    (tmp_path / "profile.yaml").write_text(json.dumps({"name": "mine", **faults}))
    with standing(tmp_path, *args, env=origins(up)) as stands:
        address, _, token = stands.variables["OPENAI_BASE_URL"].partition("/p/")[0].partition("/r/")
        proxy = address.replace("//", f"//x:{token}@")
        with httpx.Client(proxy=proxy, trust_env=False) as client:
            assert client.get(f"{up.url}/search").status_code == 503
    assert up.count("/search") == 0
    (exchange,) = Tape.open(stands.tape)
    assert (str(exchange.site), exchange.sent, exchange.faults[0].mode) == ("tool/search#1", 0, "error")


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_a_contract_is_judged_on_the_calls_of_an_agent_that_somebody_else_started(
    tmp_path: Path, up: Upstream, sdk: str
) -> None:
    with attended(tmp_path, up, "--all", SDK=sdk) as (stands, url):
        write_config(tmp_path, agent=agent_at(url), **contract(up, *SCENARIOS))
        assert httpx.post(f"{url}/invoke", json={"input": "before"}, trust_env=False, timeout=60).status_code == 200
        done = flakestorm(tmp_path, "contract", "run", report=True)
        assert httpx.post(f"{url}/invoke", json={"input": "after"}, trust_env=False, timeout=60).status_code == 200
    assert done.code == 0, done.err
    model = "gpt-4o" if sdk == "openai" else "claude-sonnet-4-5"
    assert done.run("calm")["calls"] == {"llm": 2, "tool": 1, "mcp": 0, "http": 0}
    assert [f["site"] for f in done.run("search-down")["faults"]["fired"]] == ["tool/search#1"]
    assert [f["site"] for f in done.run("busy")["faults"]["fired"]] == [f"llm/{model}#{n}" for n in (1, 2, 3)]
    assert any("took turns" in note for note in done.report["notes"])  # type: ignore[index]
    kinds = [exchange.kind for exchange in Tape.open(stands.tape)]
    assert kinds == ["llm", "http", "llm"] * 2  # before and after; in between are the runs


def test_verify_says_what_came_through_the_gateway(tmp_path: Path, up: Upstream) -> None:
    with attended(tmp_path, up) as (stands, url):
        write_config(tmp_path, agent=agent_at(url))
        done = flakestorm(tmp_path, "verify")
    assert done.code == 0
    assert "gateway, by a provider's variable: 2" in done.out
    assert f"gateway: {stands.variables['OPENAI_BASE_URL'].partition('/r/')[0]}" in done.out
    assert f"OPENAI_BASE_URL -> {up.url}/v1" in done.out


def test_the_gateways_own_faults_are_not_those_of_a_run(tmp_path: Path, up: Upstream) -> None:
    with attended(tmp_path, up, "--inject", "llm/gpt-4o#1=empty") as (_, url):
        write_config(tmp_path, agent=agent_at(url), **contract(up, {"name": "calm"}))
        done = flakestorm(tmp_path, "contract", "run", report=True)
    assert (done.code, done.run("calm")["faults"]["fired"]) == (0, [])


def test_the_gateway_is_found_by_the_environment_too(tmp_path: Path, up: Upstream) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with attended(there, up) as (stands, url):
        write_config(here, agent=agent_at(url), **contract(up, *SCENARIOS[:1]))
        variables = {"OPENAI_BASE_URL": stands.variables["OPENAI_BASE_URL"]}
        assert flakestorm(here, "contract", "run", env=variables, report=True).run("calm")["calls"]["llm"] == 2


def test_without_traffic_nothing_is_concluded_and_it_says_what_to_do(tmp_path: Path, up: Upstream) -> None:
    with running({**origins(up), "SEARCH_URL": f"{up.url}/search"}) as url:
        write_config(tmp_path, agent=agent_at(url), **contract(up, *SCENARIOS))
        done = flakestorm(tmp_path, "contract", "run", report=True)
        assert done.code == 3, done.out
        assert any("flakestorm gateway" in note for note in done.report["notes"])  # type: ignore[index]
        assert "no call of the agent crossed" in done.cell("calm", "quiet")["reason"]
        assert done.cell("calm", "completes")["verdict"] == "pass"
        with standing(tmp_path):  # one that this agent does not use
            done = flakestorm(tmp_path, "contract", "run", report=True)
        assert done.code == 3
        assert any("flakestorm gateway" in note for note in done.report["notes"])  # type: ignore[index]


def test_a_gateway_that_was_killed_is_no_obstacle(tmp_path: Path, up: Upstream) -> None:
    with standing(tmp_path) as stands:
        stands.stop(signal.SIGKILL)
    with running({**origins(up), "SEARCH_URL": f"{up.url}/search"}) as url:
        write_config(tmp_path, agent=agent_at(url), **contract(up, {"name": "calm"}))
        done = flakestorm(tmp_path, "contract", "run", report=True)
    assert done.cell("calm", "completes")["verdict"] == "pass"
    assert Tape.open(stands.tape).complete is False


def test_an_interrupted_run_gives_the_port_back(tmp_path: Path, up: Upstream) -> None:
    with standing(tmp_path, env=origins(up)) as stands:
        with running({**stands.variables, "SEARCH_URL": f"{up.url}/search"}) as url:
            slow = {"name": "slow", "llm_faults": [{"mode": "timeout", "delay_ms": 60000}]}
            write_config(tmp_path, agent=agent_at(url), **contract(up, slow))
            words = [str(FLAKESTORM), "contract", "run", "--format", "json", "-o", "out.json"]
            process = subprocess.Popen(words, cwd=tmp_path, env=clean_env(), stderr=subprocess.PIPE, text=True)
            tapes = tmp_path / "out.tapes"
            while not list(tapes.glob("*.tape")):
                with pytest.raises(subprocess.TimeoutExpired):  # it goes on until it is killed
                    process.wait(0.05)
            busy = flakestorm(tmp_path, "contract", "run")
            assert (busy.code, "another run" in busy.err + busy.out) == (3, True)
            process.kill()
            process.communicate(timeout=30)
        with running({**stands.variables, "SEARCH_URL": f"{up.url}/search"}) as url:
            assert httpx.post(f"{url}/invoke", json={"input": "a"}, trust_env=False, timeout=60).status_code == 200
    asked = [exchange.kind for exchange in Tape.open(stands.tape)]
    # The first agent's SDK may have asked again, of nobody's run, between the end of its run and its own.
    assert asked[-2:] == ["llm", "llm"]
    assert set(asked) == {"llm"}
