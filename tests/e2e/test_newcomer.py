"""Things that go wrong on the first day: each gives a clear message, the right exit code, and no traceback."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from e2e_support import FLAKESTORM, PROGRAMS, clean_env, flakestorm, sdk_agent, wait_until, world, write_config
from upstream import Gate, Upstream, document, sse, text

CONTRACT = {
    "name": "first",
    "invariants": [{"id": "whole", "type": "completes", "severity": "critical"}],
    "chaos_matrix": [{"name": "calm"}],
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processes_of(folder: Path) -> list[str]:
    """Command lines of live processes that were started with this folder's marker in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if str(folder) in (entry / "environ").read_bytes().decode(errors="replace"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it ended meanwhile, or is not ours
    return [line for line in found if "sdk_agent" in line or "stubborn" in line]


def test_missing_config(tmp_path) -> None:
    done = flakestorm(tmp_path, "contract", "run")
    assert done.code == 2
    assert "flakestorm.yaml" in done.err
    assert "flakestorm init" in done.err


def test_wrong_config_names_file_line_key_and_the_nearest_word(tmp_path) -> None:
    (tmp_path / "flakestorm.yaml").write_text(
        "version: '2.0'\nagent:\n  endpont: http://127.0.0.1:1\ngolden_prompts: [a]\n"
    )
    done = flakestorm(tmp_path, "contract", "validate")
    assert done.code == 2
    assert "flakestorm.yaml:3" in done.err
    assert "endpoint" in done.err


def test_unreachable_agent(tmp_path) -> None:
    write_config(tmp_path, agent={"endpoint": f"http://127.0.0.1:{free_port()}/invoke"}, contract=CONTRACT)
    done = flakestorm(tmp_path, "contract", "run", report=True)
    assert done.code == 3
    assert "reach" in done.out + done.err
    assert done.report is not None
    assert done.report["verdict"] == "inconclusive"


def test_agent_that_dies_at_start(tmp_path) -> None:
    agent = {
        "start": [sys.executable, "-c", "import sys; sys.exit('no database: set DATABASE_URL')"],
        "endpoint": "http://127.0.0.1:{port}/invoke",
    }
    write_config(tmp_path, agent=agent, contract=CONTRACT)
    done = flakestorm(tmp_path, "contract", "run")
    assert done.code == 3
    assert "no database: set DATABASE_URL" in done.out + done.err


def test_port_in_use(tmp_path) -> None:
    with socket.socket() as other, world() as up:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        agent = json.loads(json.dumps(sdk_agent(up)).replace("{port}", port))
        write_config(tmp_path, agent=agent, contract=CONTRACT)
        done = flakestorm(tmp_path, "contract", "run")
    assert done.code == 3
    assert f"port {port} is already in use" in done.out + done.err


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (text("<html>it works</html>", content_type="text/html"), "it works"),
        (document({"error": "out of credit"}), "out of credit"),
        (document({"detail": "boom"}, status=500), "500"),
    ],
)
def test_replies_that_are_no_answers(tmp_path, reply, words) -> None:
    with Upstream() as up:
        up.reply("/invoke", reply)
        write_config(tmp_path, agent={"endpoint": f"{up.url}/invoke"}, contract=CONTRACT)
        done = flakestorm(tmp_path, "contract", "run", report=True)
    assert done.code == 1
    assert words in done.cell("calm", "whole")["reason"]


def test_an_error_of_null_is_a_success(tmp_path) -> None:
    with Upstream() as up:
        up.reply("/invoke", document({"output": "fine", "error": None}))
        write_config(tmp_path, agent={"endpoint": f"{up.url}/invoke"}, contract=CONTRACT)
        assert flakestorm(tmp_path, "contract", "run").code == 0


def test_prompts_with_quotes_newlines_and_braces_arrive_as_they_are(tmp_path) -> None:
    hostile = 'say "hi",\nthen {prompt} and \\ and ünïcode 🙂 and </script>'
    with Upstream() as up:
        up.reply("/invoke", lambda request: document({"output": request.json()["q"]["text"]}))
        agent = {"endpoint": f"{up.url}/invoke", "request_template": '{"q": {"text": "{prompt}"}}'}
        write_config(tmp_path, agent=agent, golden_prompts=[hostile], contract=CONTRACT)
        done = flakestorm(tmp_path, "contract", "run", report=True)
    assert done.run("calm")["output"] == hostile


@pytest.mark.parametrize(
    ("matrix", "words"),
    [([], "chaos_matrix is empty"), ([{"name": "twice"}, {"name": "twice"}], "twice")],
)
def test_matrices_that_make_no_sense(tmp_path, matrix, words) -> None:
    write_config(tmp_path, agent={"endpoint": "http://127.0.0.1:1"}, contract={**CONTRACT, "chaos_matrix": matrix})
    done = flakestorm(tmp_path, "contract", "run")
    assert done.code == 2
    assert words in done.err


def test_unknown_commands_and_profiles_get_the_nearest_name(tmp_path) -> None:
    assert "contract" in flakestorm(tmp_path, "contrac").err
    write_config(tmp_path, agent={"endpoint": "http://127.0.0.1:1"}, invariants=[{"type": "completes"}])
    done = flakestorm(tmp_path, "chaos", "--profile", "api_outtage")
    assert done.code == 2
    assert "api_outage" in done.err


def test_plain_run_of_an_agent_that_is_not_there_judges_nothing(tmp_path) -> None:
    write_config(tmp_path, agent={"endpoint": "http://127.0.0.1:1"}, invariants=[{"type": "completes"}])
    done = flakestorm(tmp_path, "run")
    assert done.code == 3
    assert "nothing listens on 127.0.0.1:1" in done.out


def test_an_unwritable_report_folder(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with Upstream() as up:
        up.reply("/invoke", document({"output": "fine"}))
        write_config(tmp_path, agent={"endpoint": f"{up.url}/invoke"}, contract=CONTRACT)
        done = flakestorm(tmp_path, "contract", "run", "-o", "file/report.json")
    assert done.code == 2
    assert "file" in done.err


def test_ctrl_c_keeps_what_finished_leaves_no_process_and_can_be_resumed(tmp_path) -> None:
    """The second prompt hangs on a gate; Ctrl-C comes while it does."""
    gate = Gate()

    def model(request):
        if "hang" in request.body.decode():
            return sse(["[DONE]"], gates={0: gate})
        return document(
            {
                "id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
            }
        )  # fmt: skip

    with world() as up:
        up.reply("/v1/chat/completions", model)
        agent = sdk_agent(up)
        agent["env"]["MARK"] = str(tmp_path)
        write_config(tmp_path, agent=agent, golden_prompts=["quick", "hang"], contract=CONTRACT)
        words = ["contract", "run", "--concurrency", "1", "--seed", "3", "--format", "json", "-o", "out/report.json"]
        running = subprocess.Popen(
            [FLAKESTORM, *words],
            cwd=tmp_path,
            env=clean_env(),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        wait_until(lambda: up.count("/v1/chat/completions") == 2)
        os.kill(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=30)
        gate.open()
        assert running.returncode == 130
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        assert [run["input"] for run in report["runs"]] == ["quick"]
        assert "--resume" in err
        assert processes_of(tmp_path) == []

        up.reply("/v1/chat/completions", lambda request: model(request) if "quick" in str(request.body) else fine())
        again = flakestorm(tmp_path, *words[:-2], "--resume", "out/report.json", "-o", "out/whole.json")
        assert again.code == 0, again.err
        whole = json.loads((tmp_path / "out" / "whole.json").read_text())
    assert [run["input"] for run in whole["runs"]] == ["quick", "hang"]
    asked = [request.json()["messages"][0]["content"] for request in up.requests]
    assert asked.count("quick") == 1


def fine():
    from upstream import openai_chat

    return openai_chat("fine")


def test_a_command_agent_that_never_ends_is_stopped_with_its_children(tmp_path) -> None:
    script = PROGRAMS / "stubborn.sh"
    agent = {"type": "command", "start": f"/bin/sh {script}", "timeout": 1000, "env": {"MARK": str(tmp_path)}}
    write_config(tmp_path, agent=agent, contract=CONTRACT)
    done = flakestorm(tmp_path, "contract", "run", report=True)
    assert done.code == 1
    assert "timeout" in done.cell("calm", "whole")["reason"]
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("command", [["run"], ["contract", "run"], ["chaos"], ["ci"]])
def test_an_agent_that_is_not_there_is_told_of_once(tmp_path: Path, command: list[str]) -> None:
    write_config(
        tmp_path,
        agent={"type": "http", "endpoint": f"http://127.0.0.1:{free_port()}/ask"},
        golden_prompts=["hello"],
        invariants=[{"type": "completes"}],
        chaos={"tool_faults": [{"tool": "*", "mode": "error"}]},
        contract=CONTRACT,
    )
    done = flakestorm(tmp_path, *command)
    assert done.code == 3
    said = " ".join(f"{done.out} {done.err}".split())
    assert said.count("could not be reached") == 1
    assert said.count("start the agent first") == 1
