"""What the README shows is executed: its config is judged, its commands and its Python run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from e2e_support import PROGRAMS, clean_env, flakestorm, world
from flakestorm.config import loads

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[list[str]]:
    lines = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line) for line in lines if line.startswith("flakestorm ")]


@pytest.fixture
def project(tmp_path):
    """The README's project: its config, an agent that fits it, and the world the agent calls."""
    (config,) = blocks("yaml")
    (tmp_path / "flakestorm.yaml").write_text(config.replace("python agent.py", f"{sys.executable} agent.py"))
    (tmp_path / "agent.py").write_text((PROGRAMS / "sdk_agent.py").read_text())
    with world() as up:
        from upstream import document

        up.reply("/flights", document({"flights": 3}))
        variables = {
            "OPENAI_BASE_URL": f"{up.url}/v1",
            "OPENAI_API_KEY": "test-key-of-nobody",
            "SEARCH_URL": f"{up.url}/flights",
        }
        yield tmp_path, variables


def test_the_config_is_valid() -> None:
    (config,) = blocks("yaml")
    assert loads(config).contract is not None


def test_every_command_shown_runs(project) -> None:
    folder, env = project
    shown = commands()
    assert ["flakestorm", "contract", "run"] in shown
    for words in shown:
        done = flakestorm(folder, *words[1:], env=env)
        assert done.code in (0, 1), f"{shlex.join(words)}: {done.out}{done.err}"


def test_the_contract_shown_is_judged_conclusively(project) -> None:
    folder, env = project
    done = flakestorm(folder, "contract", "run", env=env, report=True)
    assert done.report is not None
    verdicts = {(c["scenario"], c["invariant"]): c["verdict"] for c in done.report["cells"]}
    assert verdicts == {
        ("calm", "completes"): "pass",
        ("search-down", "completes"): "pass",
        ("search-down", "admits-outage"): "pass",
        ("rate-limited", "completes"): "pass",
        ("cut-off", "completes"): "pass",
    }
    assert done.code == 0


def test_the_python_shown_runs(project) -> None:
    folder, env = project
    (script,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=clean_env(env), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pass ")


def test_links_to_files_lead_somewhere() -> None:
    for page in [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
