"""`ci` and what is kept of it, from outside: exit codes, interruption, kill, and reports that come back."""

import json
import os
import signal
import subprocess
import xml.etree.ElementTree as ET

import pytest

from e2e_support import FLAKESTORM, clean_env, flakestorm, wait_until, write_config
from upstream import Upstream, document

AGENT = """
import os, pathlib, threading
import httpx

def answer(text):
    if text == "hang" and not pathlib.Path("go").exists():
        pathlib.Path("hanging").touch()
        threading.Event().wait(60)
    with open("asked", "a") as file:
        file.write(text + "\\n")
    reply = httpx.get(os.environ["SEARCH_URL"])
    return "found three" if reply.status_code == 200 else "the search is unavailable"
"""
DOWN = {"tool": "search", "mode": "error", "error_code": 503}


@pytest.fixture
def project(tmp_path):
    """A config with a chaos and a contract phase; the agent admits that its search is down."""
    (tmp_path / "my_agent.py").write_text(AGENT)
    with Upstream() as up:
        up.reply("/search", document({"flights": 3}))

        def write(*, prompts=("quick",), value="unavailable", severity="critical", **more):
            rule = {"id": "admits", "type": "contains", "value": value, "severity": severity}
            write_config(
                tmp_path,
                agent={"type": "python", "endpoint": "my_agent:answer"},
                golden_prompts=list(prompts),
                boundary={"tools": {"search": "*/search"}},
                invariants=[{"id": "answers", "type": "output_not_empty"}],
                chaos={"tool_faults": [DOWN]},
                contract={
                    "name": "c",
                    "invariants": [rule],
                    "chaos_matrix": [{"name": "down", "tool_faults": [DOWN]}],
                },
                advanced={"seed": 5, "concurrency": 1},
                **more,
            )

        write()
        write.env = {"SEARCH_URL": f"{up.url}/search"}
        yield write


def test_all_pass_is_0_with_a_page_that_links_the_phases(project, tmp_path) -> None:
    done = flakestorm(tmp_path, "ci", env=project.env)
    assert (done.code, "PASS" in done.out) == (0, True), done.err
    [folder] = (tmp_path / "reports").iterdir()
    page = (folder / "report.html").read_text()
    for phase in ("chaos", "contract"):
        assert f'href="./{phase}.html"' in page
        assert (folder / f"{phase}.html").is_file()


def test_a_critical_failure_is_1(project, tmp_path) -> None:
    project(value="never said")
    done = flakestorm(tmp_path, "ci", env=project.env, report=True)
    assert (done.code, done.report["verdict"], done.report["scores"]["overall"]["value"]) == (1, "fail", 0.5)
    assert done.report["scores"]["overall"]["critical_failed"] is True


def test_a_low_score_is_1(project, tmp_path) -> None:
    project(value="never said", severity="medium")
    assert flakestorm(tmp_path, "ci", env=project.env).code == 0
    done = flakestorm(tmp_path, "ci", "--min-score", "0.9", env=project.env)
    assert done.code == 1
    assert "the overall score 0.5 is below the 0.9 asked for" in done.out


def test_a_session_whose_contract_is_not_there_is_2(project, tmp_path) -> None:
    project(chaos_matrix=[], replays={"sessions": [{"id": "a", "input": "b"}]})
    done = flakestorm(tmp_path, "ci", env=project.env)
    assert done.code == 2
    assert "there is no contract 'default'" in done.err


def test_a_fault_that_never_fires_is_3(project, tmp_path) -> None:
    project(value="found")
    config = (tmp_path / "flakestorm.yaml").read_text().replace("tool: search", "tool: nobody")
    (tmp_path / "flakestorm.yaml").write_text(config)
    done = flakestorm(tmp_path, "ci", env=project.env)
    assert (done.code, "never found its tool" in done.out) == (3, True)


@pytest.mark.parametrize("text", ["version: '3.0'", "agent: [", "agent: {endpoint: x, speed: 3}"])
def test_a_bad_config_is_2(project, tmp_path, text) -> None:
    (tmp_path / "flakestorm.yaml").write_text(text)
    done = flakestorm(tmp_path, "ci", env=project.env)
    assert (done.code, "flakestorm.yaml:" in done.err) == (2, True)
    assert not (tmp_path / ".flakestorm").exists()


def start(tmp_path, env, *words: str) -> subprocess.Popen[str]:
    """A command whose agent hangs in the middle."""
    running = subprocess.Popen(
        [FLAKESTORM, *words],
        cwd=tmp_path,
        env=clean_env(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until((tmp_path / "hanging").exists)
    return running


def test_an_interruption_is_130_and_what_had_finished_is_not_run_again(project, tmp_path) -> None:
    project(prompts=("quick", "hang"))
    running = start(tmp_path, project.env, "ci", "--format", "json", "-o", "one.json")
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "--resume" in err
    report = json.loads((tmp_path / "one.json").read_text())
    assert [(p["name"], p["status"]) for p in report["phases"]] == [("chaos", "interrupted"), ("contract", "not run")]
    assert [run["input"] for run in report["runs"]] == ["quick"]

    (tmp_path / "go").touch()
    words = err.split("To resume: flakestorm ")[1].split()
    done = flakestorm(tmp_path, *words, env=project.env)
    assert done.code == 0, done.err
    assert (tmp_path / "asked").read_text().split() == ["quick", "hang", "quick", "hang"]


def test_ctrl_c_is_not_for_a_command_that_was_started_in_the_background(tmp_path) -> None:
    """A shell without job control has what it starts with `&` ignore SIGINT."""
    interrupts = "import os, signal\n\ndef answer(text):\n    os.kill(os.getpid(), signal.SIGINT)\n    return 'here'\n"
    (tmp_path / "interrupts.py").write_text(interrupts)
    write_config(
        tmp_path, agent={"type": "python", "endpoint": "interrupts:answer"}, invariants=[{"type": "completes"}]
    )
    done = subprocess.run(
        ["sh", "-c", f"trap '' INT; exec {FLAKESTORM} run --prompt 0"],
        cwd=tmp_path, env=clean_env({}), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_killed_command_can_be_read_and_resumed(project, tmp_path) -> None:
    project(prompts=("quick", "hang"))
    running = start(tmp_path, project.env, "contract", "run")
    listed = ["report", "--format", "json"]
    wait_until(lambda: json.loads(flakestorm(tmp_path, *listed).out)["reports"][0]["runs"] == 1)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=60)

    [entry] = json.loads(flakestorm(tmp_path, *listed).out)["reports"]
    assert (entry["done"], entry["runs"]) == (False, 1)
    shown = flakestorm(tmp_path, "report", entry["id"])
    assert "never came to its end; 1 of its runs were kept" in shown.out
    assert "down" in shown.out

    (tmp_path / "go").touch()
    done = flakestorm(tmp_path, "contract", "run", "--resume", entry["id"], env=project.env, report=True)
    assert done.code == 0, done.err
    assert [run["input"] for run in done.report["runs"]] == ["quick", "hang"]
    assert (tmp_path / "asked").read_text().split() == ["quick", "hang"]


def test_a_saved_report_outlives_its_folder(project, tmp_path) -> None:
    import shutil

    done = flakestorm(tmp_path, "contract", "run", env=project.env)
    [id_] = [line.split()[1] for line in done.out.splitlines() if line.startswith("saved: ")]
    shutil.rmtree(tmp_path / "reports")
    assert flakestorm(tmp_path, "score", id_).out == "100\n"
    xml = ET.fromstring(flakestorm(tmp_path, "report", id_, "--format", "junit").out)
    assert [case.get("name") for case in xml.iter("testcase")] == ["admits [prompt 0, trial 1]"]
    page = flakestorm(tmp_path, "report", id_, "--format", "html").out
    assert "/search" in page  # the timeline comes from the tape that the store kept
    tape = flakestorm(tmp_path, "tapes", "show", f"{id_}/r-0001", "--format", "json")
    assert json.loads(tape.out)["exchanges"][0]["site"] == "tool/search#1"


def test_a_folder_that_cannot_be_written_costs_a_note(project, tmp_path) -> None:
    (tmp_path / ".flakestorm").write_text("in the way")
    done = flakestorm(tmp_path, "contract", "run", env=project.env)
    assert done.code == 0
    assert "note: this report was not saved for later: the store" in done.err


SPEAKS = [
    (("contract", "run"), "junit", "<?xml"),
    (("chaos",), "markdown", "## "),
    (("ci",), "sarif", "{"),
    (("run", "--inject", "tool/search#1=error:503"), "json", "{"),
]


@pytest.mark.parametrize(("words", "form", "first"), SPEAKS)
def test_every_judging_command_speaks_to_machines(project, tmp_path, words, form, first) -> None:
    """Each in one form, since all of them are made by the same code; `tests/unit/cli/test_forms.py` has the others."""
    done = flakestorm(tmp_path, *words, "--format", form, env=project.env)
    assert (done.code, done.out.startswith(first)) == (0, True), done.err
