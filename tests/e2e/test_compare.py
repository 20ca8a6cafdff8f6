"""`flakestorm compare` as a user meets it: configs, git refs, reports and saved runs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from e2e_support import FLAKESTORM, clean_env, flakestorm, sdk_agent, wait_until, world, write_config
from upstream import Upstream, document

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "reference" / "compare.schema.json"
GOOD = "import helper\n\ndef answer(text):\n    return helper.say(text)\n"
KIND = "def say(text):\n    return f'hello {text}'\n"
RUDE = "def say(text):\n    return f'go away {text}' if 'b' in text else f'hello {text}'\n"
CONTRACT = {
    "name": "polite",
    "invariants": [
        {"id": "greets", "type": "contains", "value": "hello", "severity": "high"},
        {"id": "filled", "type": "output_not_empty"},
    ],
    "chaos_matrix": [{"name": "calm"}],
}


def version(folder: Path, helper: str, **more) -> Path:
    """A project with an agent of two modules."""
    folder.mkdir(exist_ok=True)
    (folder / "agent.py").write_text(GOOD)
    (folder / "helper.py").write_text(helper)
    blocks = {"agent": {"type": "python", "endpoint": "agent:answer"}, "contract": CONTRACT, **more}
    return write_config(folder, golden_prompts=["a", "b", "c"], **blocks)


def compare(folder: Path, base, head, *words: str):
    done = flakestorm(folder, "compare", str(base), str(head), *words, "--seed", "1", "-o", "out/c.json")
    file = folder / "out" / "c.json"
    document = json.loads(file.read_text()) if file.exists() else None
    if document is not None:
        Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    return done, document


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_a_regression_between_two_folders_with_modules_of_one_name(tmp_path) -> None:
    good, bad = version(tmp_path / "good", KIND), version(tmp_path / "bad", RUDE)
    done, found = compare(tmp_path, good, bad)
    assert done.code == 1, done.err
    assert (found["conclusion"], found["exit_code"]) == ("regression", 1)
    pairs = found["pairs"]
    assert (pairs["won"], pairs["unjudged"]) == (0, 0)
    assert 0 < pairs["lost"] < 20  # it stopped long before the 200 pairs
    assert pairs["judged"] == pairs["lost"] + pairs["tied"] <= 60
    lost = {line["invariant"]: line["lost"] for line in found["invariants"]}
    assert lost == {"greets": pairs["lost"], "filled": 0}
    assert {each["prompt"] for each in found["differing"]} == {"b"}
    assert {each["head_said"] for each in found["differing"]} == {"go away b"}
    assert [k["k"] for k in found["pass_k"]["base"]][:4] == [1, 2, 3, 4]
    assert "HEAD breaks greets" in done.out
    assert all(Path(tmp_path / "out" / run["tape"]).exists() for run in found["runs"])


def test_equal_versions_are_no_regression_and_an_improvement_is_none(tmp_path) -> None:
    good, bad = version(tmp_path / "good", KIND), version(tmp_path / "bad", RUDE)
    done, found = compare(tmp_path, good, good)
    assert done.code == 0, done.out
    assert found["pairs"]["tied"] == found["pairs"]["judged"] < 100
    assert found["latency_ms"]["pairs"] == found["pairs"]["judged"]
    done, found = compare(tmp_path, bad, good)
    assert (done.code, found["headline"].startswith("HEAD is better")) == (0, True)


def test_too_few_pairs_are_inconclusive_and_say_how_many_more(tmp_path) -> None:
    good = version(tmp_path / "good", KIND)
    done, found = compare(tmp_path, good, good, "--max-pairs", "6")
    assert (done.code, found["pairs"]["judged"]) == (3, 6)
    assert found["pairs"]["needed"] > 6
    assert f"about {found['pairs']['needed']} more pairs" in done.out
    done, found = compare(tmp_path, good, good, "--max-runs", "8")
    assert (done.code, found["stopped"], found["pairs"]["judged"]) == (3, "--max-runs 8", 4)
    assert len(found["runs"]) == 8


def test_two_commits_and_the_working_copy(tmp_path) -> None:
    project = tmp_path / "repository"
    version(project, KIND)
    (project / ".gitignore").write_text("reports\n.flakestorm\nout\n__pycache__\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "kind")
    (project / "helper.py").write_text(RUDE)
    git(project, "commit", "-qam", "rude")
    done, found = compare(project, "HEAD~1", "HEAD")
    assert done.code == 1, done.err
    assert (found["base"]["kind"], len(found["base"]["commit"])) == ("git", 40)
    assert found["base"]["commit"] != found["head"]["commit"]
    (project / "helper.py").write_text(KIND)
    assert compare(project, "HEAD", "flakestorm.yaml")[0].code == 0
    listed = subprocess.run(["git", "worktree", "list"], cwd=project, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1  # nothing is left of the checkouts
    missing, _ = compare(project, "HEAD", "nowhere")
    assert missing.code == 2
    assert "no commit" in missing.err
    hostile, _ = compare(project, "HEAD", "main --upload-pack=touch x")
    assert hostile.code == 2


def test_saved_runs_and_reports_are_compared_without_running_anything(tmp_path) -> None:
    folder = tmp_path / "project"
    version(folder, KIND)
    words = ["contract", "run", "--trials", "8", "--seed", "1", "-o"]
    assert flakestorm(folder, *words, "base.json").code == 0
    (folder / "helper.py").write_text(RUDE)
    assert flakestorm(folder, *words, "head.json").code == 1
    (folder / "agent.py").unlink()
    done, found = compare(folder, "base.json", "head.json")
    assert (done.code, found["pairs"]["lost"], found["pairs"]["tied"]) == (1, 8, 16), done.err
    assert found["base"]["kind"] == "report"
    ids = [e["id"] for e in json.loads(flakestorm(folder, "report", "--format", "json").out)["reports"]]
    head, base = ids[1:]
    assert compare(folder, base, head)[0].code == 1
    assert compare(folder, head, base)[0].code == 0
    shown = flakestorm(folder, "report", ids[0])
    assert shown.out.startswith("REGRESSION  HEAD is worse")
    assert flakestorm(folder, "report", "out/c.json").out.startswith("NO REGRESSION  HEAD is better")
    assert flakestorm(folder, "report", ids[0], "--format", "markdown").out.startswith("## Regression")


def test_a_report_is_compared_with_what_is_there_now(tmp_path) -> None:
    folder = tmp_path / "project"
    version(folder, KIND)
    assert flakestorm(folder, "contract", "run", "--trials", "8", "--seed", "1", "-o", "base.json").code == 0
    (folder / "helper.py").write_text(RUDE)
    done, found = compare(folder, "base.json", "flakestorm.yaml")
    assert done.code == 1, done.err
    assert found["seed"] == 1
    assert "made with seed 1" in flakestorm(folder, "compare", "base.json", "flakestorm.yaml", "--seed", "2").err


def test_launched_agents_with_tokens_and_cost(tmp_path) -> None:
    with world() as up:
        agent = sdk_agent(up)
        contract = {**CONTRACT, "invariants": [{"id": "whole", "type": "completes"}]}
        config = write_config(tmp_path, agent=agent, contract=contract)
        done, found = compare(tmp_path, config, config, "--max-pairs", "3", "--no-replay")
    assert done.code == 3
    assert found["pairs"]["free"] == 0
    assert found["tokens"]["difference"] == 0
    assert found["cost"]["base"] == found["cost"]["head"] > 0
    assert "cost: BASE" in done.out


def test_the_same_running_agent_twice_is_said(tmp_path) -> None:
    with Upstream() as up:
        up.reply("/invoke", document({"output": "hello"}))
        config = write_config(tmp_path, agent={"endpoint": f"{up.url}/invoke"}, contract=CONTRACT)
        done, found = compare(tmp_path, config, config, "--max-pairs", "2")
    assert done.code == 3
    assert "compared with itself" in " ".join(found["notes"])


def test_ctrl_c_keeps_the_pairs_that_had_finished(tmp_path) -> None:
    slow = (
        "import pathlib, time\n\ndef answer(text):\n    p = pathlib.Path('count')\n"
        "    n = len(p.read_text()) if p.exists() else 0\n    p.write_text('x' * (n + 1))\n"
        "    time.sleep(60 if n > 6 else 0)\n    return 'hello'\n"
    )
    version(tmp_path, KIND)
    (tmp_path / "agent.py").write_text(slow)
    words = ["compare", "flakestorm.yaml", "flakestorm.yaml", "--concurrency", "1", "-o", "c.json"]
    running = subprocess.Popen([FLAKESTORM, *words], cwd=tmp_path, env=clean_env(), stderr=subprocess.PIPE, text=True)
    count = tmp_path / "count"
    wait_until(lambda: count.exists() and len(count.read_text()) == 8)
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    found = json.loads((tmp_path / "c.json").read_text())
    assert (found["pairs"]["judged"], found["interrupted"]) == (3, True)
    asked = len(count.read_text())
    (tmp_path / "agent.py").write_text(slow.replace("60 if n > 6 else 0", "0"))
    words = err.split("To resume: flakestorm ")[1].split()
    done = flakestorm(tmp_path, *words[:-2], "--max-pairs", "5", "--resume", "c.json", "-o", "whole.json")
    assert done.code == 3, done.err
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert (whole["pairs"]["judged"], whole["seed"], len(count.read_text()) - asked) == (5, found["seed"], 4)
    assert whole["runs"][0]["output"] == found["runs"][0]["output"]
    other = flakestorm(tmp_path, "compare", "flakestorm.yaml", ".", "--resume", "c.json")
    assert (other.code, "resume it with these" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.yaml", "also-nothing.yaml"], "nothing.yaml"),
        (["flakestorm.yaml", "flakestorm.yaml", "--alpha", "0"], "alpha"),
        (["flakestorm.yaml", "flakestorm.yaml", "--format", "junit"], "no form 'junit'"),
        (["flakestorm.yaml", "wrong.yaml"], "wrong.yaml"),
    ],
)
def test_wrong_use_is_2(tmp_path, words, said) -> None:
    version(tmp_path, KIND)
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump({"version": "9"}))
    done = flakestorm(tmp_path, "compare", *words)
    assert done.code == 2, done.out
    assert said in done.err


def test_from_python(tmp_path) -> None:
    good, bad = version(tmp_path / "good", KIND), version(tmp_path / "bad", RUDE)
    script = (
        "import flakestorm\n"
        f"found = flakestorm.load({str(bad)!r}).compare({str(good)!r}, terms=flakestorm.Terms(max_pairs=60))\n"
        "print(found.conclusion, found.exit_code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=clean_env(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "regression 1\n"
