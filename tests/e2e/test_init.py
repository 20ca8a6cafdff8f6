"""`flakestorm init`: from an agent that is there to a report about it."""

import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e_support import PROGRAMS, clean_env, flakestorm, sdk_agent, wait_until, world
from flakestorm.config.load import load


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(env: dict[str, str]) -> Iterator[int]:
    """The agent, started by somebody else."""
    port = free_port()
    words = [sys.executable, str(PROGRAMS / "sdk_agent.py"), "--port", str(port)]
    agent = subprocess.Popen(words, env=clean_env(env))
    try:
        with socket.socket():
            wait_until(lambda: _listens(port))
        yield port
    finally:
        agent.kill()
        agent.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how a program was started")
def test_a_running_agent_in_an_empty_folder_gets_a_contract_with_faults(tmp_path: Path) -> None:
    with world() as up:
        env = sdk_agent(up)["env"]
        with running(env) as port:
            done = flakestorm(tmp_path, "init", "--port", str(port), env=env)
            assert done.code == 0, done.err
            assert f"an agent on port {port}" in done.out
            assert load(tmp_path / "flakestorm.yaml").agent.start
            judged = flakestorm(tmp_path, "contract", "run", env=env, report=True)
    assert judged.report is not None, judged.err
    assert judged.code == 0, judged.out
    assert {cell["verdict"] for cell in judged.report["cells"]} == {"pass"}
    fired = {run["scenario"]: [f["site"] for f in run["faults"]["fired"]] for run in judged.report["runs"]}
    assert len(fired["tools down"]) == 1
    assert all(site.startswith("llm/") for site in fired["model rate limited"])


def test_one_whose_variables_are_not_set_here_is_judged_where_it_runs(tmp_path: Path) -> None:
    with world() as up, running({**sdk_agent(up)["env"], "OPENAI_API_KEY": "of-nobody-else"}) as port:
        done = flakestorm(tmp_path, "init", "--port", str(port))
        config = (tmp_path / "flakestorm.yaml").read_text()
        assert load(tmp_path / "flakestorm.yaml").agent.endpoint == f"http://127.0.0.1:{port}/invoke"
        assert "of-nobody-else" not in config + done.out
        judged = flakestorm(tmp_path, "contract", "run", report=True)
    assert judged.report is not None, judged.err
    assert judged.code == 3
    assert judged.cell("no chaos", "always-answers")["verdict"] == "pass"
    assert "agent.start" in judged.out + judged.err + judged.report["cells"][-1]["reason"]


def test_a_project_in_python_is_read_and_never_run(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import httpx, os, pathlib\npathlib.Path('imported').touch()\n"
        "def answer(text):\n    reply = httpx.get(f\"{os.environ['BASE']}/search\", timeout=2)\n"
        "    return 'sorry, not able to' if reply.status_code >= 400 else 'found it'\n"
    )
    done = flakestorm(tmp_path, "init", "--no-probe")
    assert (done.code, done.err) == (0, "")
    assert "tools search" in done.out
    assert not (tmp_path / "imported").exists()
    with world() as up:
        judged = flakestorm(tmp_path, "contract", "run", env={"BASE": up.url}, report=True)
    assert judged.report is not None, judged.err
    assert judged.cell("tools down", "admits-outage")["verdict"] == "pass"
    assert judged.run("tools down")["faults"]["fired"][0]["site"] == "tool/search#1"


def test_a_project_in_src_layout_is_judged_and_the_next_command_is_one_to_copy(tmp_path: Path) -> None:
    """Its modules import one another by the package's name, and nobody has installed it."""
    package = tmp_path / "mein Bot ü" / "src" / "my_bot"
    package.mkdir(parents=True)
    (tmp_path / "mein Bot ü" / "pyproject.toml").write_text("[project]\nname = 'my-bot'\nversion = '1'\n")
    (package / "__init__.py").touch()
    (package / "words.py").write_text("SORRY = 'sorry: '\n")
    (package / "agent.py").write_text("from my_bot.words import SORRY\ndef answer(text):\n    return SORRY + text\n")
    done = flakestorm(tmp_path, "init", "mein Bot ü", "--no-probe")
    assert done.code == 0, done.err
    _, verify, *_ = done.out.split("`")
    program, *words = shlex.split(verify)
    assert (program, words) == ("flakestorm", ["verify", "-c", "mein Bot ü/flakestorm.yaml"])
    asked = flakestorm(tmp_path, *words)
    assert (asked.code, "agent: answers" in asked.out) == (0, True), asked.out + asked.err


def test_an_existing_file_is_kept_and_a_wrong_port_is_nobodys(tmp_path: Path) -> None:
    assert flakestorm(tmp_path, "init", "--port", "1").code == 0
    before = (tmp_path / "flakestorm.yaml").read_text()
    again = flakestorm(tmp_path, "init")
    assert (again.code, "--force" in again.err) == (2, True)
    assert (tmp_path / "flakestorm.yaml").read_text() == before
    assert "$schema=flakestorm.schema.json" in before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(tmp_path: Path, shell: str) -> None:
    done = flakestorm(tmp_path, "completion", shell)
    assert done.code == 0
    assert f"_FLAKESTORM_COMPLETE={shell}_complete" in done.out
    asked = {"COMP_WORDS": "flakestorm con", "COMP_CWORD": "1" if shell != "fish" else "con"}
    kept = {name: value for name, value in clean_env().items() if name != "_FLAKESTORM_COMPLETE"}
    script = "import os, sys; os.environ.update(eval(sys.argv[1])); from flakestorm.cli.main import main; main([])"
    asked["_FLAKESTORM_COMPLETE"] = f"{shell}_complete"
    found = subprocess.run(
        [sys.executable, "-c", script, repr(asked)], env=kept, capture_output=True, text=True, check=False
    )
    assert "contract" in found.stdout, found.stderr
