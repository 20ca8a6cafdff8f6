"""Tapes whose secrets are out replay with the same secrets, and with no others, through the real command line."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e_support import PROGRAMS, Done, flakestorm, write_config
from leaking_support import PLANTED, spread
from upstream import Upstream

CONFIG = {"agent": {"type": "command", "start": ["true"]}, "invariants": [{"type": "completes"}]}
AGENT = (sys.executable, str(PROGRAMS / "leaky_agent.py"))


class Leaking:
    """A tape of an agent that spreads secrets, in a folder whose config names one more kind of them."""

    def __init__(self, folder: Path, up: Upstream, config: bool) -> None:
        self.folder, self.up, self.url = folder, up, up.url
        if config:
            write_config(folder, boundary={"redact": ["CUST-[0-9]+"]}, **CONFIG)
        done = self.run("record", "-o", "a.tape", "--", *AGENT)
        assert done.code == 0, done.err

    def run(self, *words: str, planted: dict[str, Any] = PLANTED, **env: str) -> Done:
        known = {"AGENT_PASSWORD": "planted-agent-0014", "CALLER_TOKEN": "planted-caller-0015"}
        env = {"TOOL_URL": self.url, "PLANTED": json.dumps(planted), **known, **env}
        return flakestorm(self.folder, *words, env=env)

    def verify(self, *words: str, planted: dict[str, Any] = PLANTED, **env: str) -> Done:
        before = len(self.up.requests)
        done = self.run("verify-tape", "a.tape", *words, planted=planted, **env)
        assert len(self.up.requests) == before
        return done


@pytest.fixture(scope="module", params=[True, False], ids=["config", "no config"])
def leaking(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Leaking]:
    with Upstream() as up:
        spread(up)
        yield Leaking(tmp_path_factory.mktemp("leaking"), up, request.param)


def test_the_same_secrets_are_equal(leaking: Leaking) -> None:
    data = Path(leaking.folder, "a.tape").read_bytes()
    assert b"planted-" not in data
    assert (b"CUST-0016" in data) is not Path(leaking.folder, "flakestorm.yaml").exists()
    done = leaking.verify("--format", "json")
    told = json.loads(done.out)
    assert (done.code, told["differences"]) == (0, [])
    assert told["requests"] == {"exact": told["recorded"]}
    assert told["digest"]["tape"] == told["digest"]["replay"]


def test_the_patterns_of_the_recording_are_on_the_tape(leaking: Leaking) -> None:
    other = leaking.folder / "other"
    other.mkdir()
    done = leaking.verify("-c", str(write_config(other, **CONFIG)))
    assert done.code == 0, done.out


def test_what_else_is_secret_here_changes_nothing(leaking: Leaking) -> None:
    done = leaking.verify(SOME_TOKEN="is known", OTHER_SECRET="planted-late")
    assert done.code == 0, done.out


def test_an_agent_that_a_config_names_is_equal_too(tmp_path: Path) -> None:
    with Upstream() as up:
        spread(up)
        agent = {
            "type": "command",
            "start": [*AGENT],
            "env": {"TOOL_URL": up.url, "PLANTED": json.dumps(PLANTED), "AGENT_PASSWORD": "planted-agent-0014"},
        }
        write_config(tmp_path, **{**CONFIG, "agent": agent}, boundary={"redact": ["CUST-[0-9]+"]})
        env = {"CALLER_TOKEN": "planted-caller-0015"}
        done = flakestorm(tmp_path, "record", "-o", "a.tape.zst", "--input", "use planted-caller-0015", env=env)
        assert done.code == 0, done.err
        before = len(up.requests)
        done = flakestorm(tmp_path, "verify-tape", "a.tape.zst", "--format", "json", env=env)
        assert len(up.requests) == before
    told = json.loads(done.out)
    assert (done.code, told["differences"]) == (0, [])
    assert told["requests"] == {"exact": told["recorded"]}
    assert told["digest"]["tape"] == told["digest"]["replay"]


def _header(name: str) -> Callable[[dict[str, Any]], None]:
    def change(planted: dict[str, Any]) -> None:
        planted["headers"][name] += "x"

    return change


def _value(name: str) -> Callable[[dict[str, Any]], None]:
    def change(planted: dict[str, Any]) -> None:
        planted[name] += "x"

    return change


def _body(n: int, old: str) -> Callable[[dict[str, Any]], None]:
    def change(planted: dict[str, Any]) -> None:
        assert old in planted["bodies"][n]
        planted["bodies"][n] = planted["bodies"][n].replace(old, "another-secret-77")

    return change


WRONG = {
    "bearer": _header("Authorization"),
    "api key": _header("X-Api-Key"),
    "shape in a header": _header("X-Custom"),
    "query": _value("query"),
    "json": _body(0, "planted-json-0007"),
    "nested": _body(0, "planted-nested-0008"),
    "form": _body(2, "planted-form-0010"),
    "late": _value("late"),
    "shape in a body": lambda planted: planted["bodies"].__setitem__(3, planted["bodies"][3] + "x"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_another_secret_is_not_the_recorded_one(leaking: Leaking, wrong: str) -> None:
    planted = copy.deepcopy(PLANTED)
    WRONG[wrong](planted)
    done = leaking.verify("--match", "scored", planted=planted)
    assert (done.code, "different" in done.out) == (1, True), done.out
    assert "planted-" not in done.out.replace("planted-late-0011x", "")  # nothing says that this is a secret
