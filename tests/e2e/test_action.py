"""The GitHub action and the GitLab job that the documentation shows: their shell steps, run as runners run them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from e2e_support import FLAKESTORM, clean_env
from upstream import Upstream, document

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text()
GITHUB, GITLAB = (yaml.safe_load(block) for block in re.findall(r"```yml\n(.*?)```", PAGE, re.DOTALL))

AGENT = """
import os
import httpx

def answer(text):
    reply = httpx.get(os.environ["SEARCH_URL"])
    return "found" if reply.status_code == 200 else "unavailable"
"""
CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "my_agent:answer"}
golden_prompts: [hello]
boundary: {tools: {search: "*/search"}}
contract:
  name: c
  invariants: [{id: admits, type: excludes_pattern, patterns: ["found"], severity: critical}]
  chaos_matrix: [{name: SCENARIO}]
"""
DOWN = "down, tool_faults: [{tool: search, mode: error}]"


@pytest.fixture
def env(tmp_path):
    (tmp_path / "my_agent.py").write_text(AGENT)
    (tmp_path / "flakestorm.yaml").write_text(CONFIG.replace("SCENARIO", DOWN))
    with Upstream() as up:
        up.reply("/search", document({}))
        yield {
            **clean_env({"SEARCH_URL": f"{up.url}/search"}),
            "PATH": f"{FLAKESTORM.parent}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(tmp_path / "github-output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        }


def bash(script: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As a runner does it."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def act(folder: Path, env: dict[str, str], **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's steps, one after the other, with its inputs' defaults."""
    given = {name: spec["default"] for name, spec in ACTION["inputs"].items()} | {"requirement": ""} | inputs
    done = None
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        named = {
            key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
            for key, value in step["env"].items()
        }
        assert "${{" not in step["run"]  # what users give reaches the shell in variables only
        done = bash(step["run"], folder, {**env, **named})
        if done.returncode:
            break
    assert done is not None
    return done


def test_the_action_judges_and_leaves_every_form(tmp_path, env) -> None:
    done = act(tmp_path, env)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in (tmp_path / "flakestorm-report").iterdir()}
    assert {"report.json", "report.html", "junit.xml", "report.sarif", "report.phases"} <= made
    assert (tmp_path / "github-output").read_text().splitlines() == ["exit-code=0", "score=1"]
    assert (tmp_path / "summary.md").read_text().startswith("## ✅ Pass")


def test_a_failing_build_fails_with_its_reports_written(tmp_path, env) -> None:
    (tmp_path / "flakestorm.yaml").write_text(CONFIG.replace("SCENARIO", "calm"))
    done = act(tmp_path, env, output="my reports")
    assert done.returncode == 1
    assert "exit-code=1" in (tmp_path / "github-output").read_text()
    assert '"ruleId": "admits"' in (tmp_path / "my reports" / "report.sarif").read_text()


def test_inputs_that_a_workflow_fills_with_nothing_are_the_defaults(tmp_path, env) -> None:
    done = act(tmp_path, env, **dict.fromkeys(ACTION["inputs"], ""))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ACTION["inputs"]["output"]["default"] / "report.json").is_file()


def test_an_earlier_builds_report_is_not_this_ones(tmp_path, env) -> None:
    """On a runner whose folder is not emptied between builds."""
    assert act(tmp_path, env).returncode == 0
    (tmp_path / "github-output").unlink()
    (tmp_path / "flakestorm.yaml").write_text("version: [")
    assert act(tmp_path, env).returncode == 2
    assert (tmp_path / "github-output").read_text() == "exit-code=2\n"
    left = {path.name for path in (tmp_path / "flakestorm-report").iterdir()}
    assert not left & {"report.json", "report.html", "junit.xml", "report.sarif"}


def test_a_form_that_cannot_be_written_does_not_change_the_verdict(tmp_path, env) -> None:
    (tmp_path / "flakestorm.yaml").write_text(CONFIG.replace("SCENARIO", "calm"))
    full = tmp_path / "bin" / "flakestorm"  # a disk that has no room for this one file
    full.parent.mkdir()
    full.write_text(f'#!/bin/sh\ncase "$*" in *.sarif) exit 2;; esac\nexec "{FLAKESTORM}" "$@"\n')
    full.chmod(0o755)
    done = act(tmp_path, {**env, "PATH": f"{full.parent}{os.pathsep}{env['PATH']}"})
    assert (done.returncode, "no report.sarif" in done.stderr) == (1, True), done.stderr
    assert (tmp_path / "github-output").read_text().splitlines() == ["exit-code=1", "score=0"]


def test_inputs_are_never_shell(tmp_path, env) -> None:
    done = act(tmp_path, env, config='x"; touch pwned; "$(touch pwned)')
    assert done.returncode == 2
    assert not (tmp_path / "pwned").exists()
    assert (tmp_path / "github-output").read_text() == "exit-code=2\n"


def test_outputs_are_those_of_the_step() -> None:
    ids = {step.get("id") for step in ACTION["runs"]["steps"]}
    for spec in ACTION["outputs"].values():
        step, name = re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.([\w-]+) \}\}", spec["value"]).groups()
        assert step in ids
        assert f"{name}=" in next(s["run"] for s in ACTION["runs"]["steps"] if s.get("id") == step)


def test_the_workflow_shown_gives_inputs_there_are_and_takes_files_there_will_be() -> None:
    uses = [step for step in GITHUB["jobs"]["agent"]["steps"] if "uses" in step]
    steps = {step["uses"].partition("@")[0]: step.get("with", {}) for step in uses}
    assert steps["flakestorm/flakestorm"].keys() <= ACTION["inputs"].keys()
    folder = ACTION["inputs"]["output"]["default"]
    assert steps["github/codeql-action/upload-sarif"]["sarif_file"] == f"{folder}/report.sarif"
    assert steps["actions/upload-artifact"]["path"] == folder
    assert steps["actions/cache"]["path"].split() == [
        path.rstrip("/") for path in GITLAB["flakestorm"]["cache"]["paths"]
    ]


def test_the_gitlab_job_shown_runs(tmp_path, env) -> None:
    job = GITLAB["flakestorm"]
    for line in [*job["script"], *job["after_script"]]:
        done = bash(line, tmp_path, env)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / job["artifacts"]["reports"]["junit"]).read_text().startswith("<?xml")
    assert 'data-testid="phase"' in (tmp_path / "flakestorm" / "report.html").read_text()
    cached = [tmp_path / path for path in job["cache"]["paths"]]
    assert all(path.exists() for path in cached)
    assert (
        not list((tmp_path / ".flakestorm").glob("*.sqlite3-wal"))
        or not (tmp_path / ".flakestorm" / "store.sqlite3-wal").stat().st_size
    )  # all that is saved is in the files that are cached
    for path in [*tmp_path.joinpath(".flakestorm").iterdir()]:
        if path not in cached:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    listed = bash("flakestorm report", tmp_path, env)
    assert (listed.returncode, len(listed.stdout.splitlines())) == (0, 2), listed.stderr


def test_the_commands_shown_run(tmp_path, env) -> None:
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            done = bash(line.removeprefix("$ "), tmp_path, env)
            assert done.returncode == 0, (line, done.stderr)
    assert bash("flakestorm tapes prune --keep 50", tmp_path, env).returncode == 0
