import json

import pytest

from unit_cli import run

CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "echo_agent:answer"}
golden_prompts: [hello, bye]
invariants: [{id: echoes, type: contains, value: "you said"}, {id: probe, type: contains, value: x, probes: [x ray]}]
output: {format: json}
"""

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("args", "prompt"), [(("--prompt", "1"), "bye"), (("--input", "anything"), "anything"), (("--input", "x ray"), "x")]
)
def test_one_input_as_it_is(capsys, args, prompt) -> None:
    assert run("run", *args) == 0
    shown = capsys.readouterr().out
    assert "run: 1 run ·" in shown


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--mutate", "noise"), "TYPE#NUMBER"),
        (("--mutate", "noise#0"), "there is no mutation noise#0"),
        (("--input", "x", "--mutate", "noise#1"), "give --prompt instead"),
        (("--chaos", "--chaos-only"), "give one of them"),
        (("--prompt", "7"), "numbered 0 to 1"),
        (("--prompt", "0", "--input", "x"), "give one of them"),
        (("--prompt", "0", "--chaos-only"), "exactly the faults given"),
        (("--inject", "tool/search#one=error"), "not a site"),
        (("--inject", "tool/search#1=melt"), "not available in this version"),
        (("--chaos-only",), "no chaos to apply"),
        (("--chaos",), "no chaos to apply"),
    ],
)
def test_what_makes_no_sense_is_2_and_says_why(capsys, args, words) -> None:
    assert run("run", *args) == 2
    assert words in capsys.readouterr().err


def test_what_an_agent_prints_stays_off_stdout(folder, capsys) -> None:
    (folder / "echo_agent.py").write_text("def answer(text):\n    print('thinking')\n    return f'you said {text}'\n")
    assert run("run", "--prompt", "0", "--format", "json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["verdict"] == "pass"
    assert "thinking" in shown.err


def test_verify_only_is_verify(capsys) -> None:
    assert run("run", "--verify-only") == 0
    assert "agent: answers" in capsys.readouterr().out


def test_ci_shows_no_progress_and_no_colour(monkeypatch, capsys) -> None:
    from flakestorm.reports import progress, terminal

    shown = []
    bar, summary = progress.Progress, terminal.summary
    monkeypatch.setattr(progress, "Progress", lambda **how: (shown.append(how), bar(**how))[1])
    monkeypatch.setattr(terminal, "summary", lambda *a, **how: (shown.append(how), summary(*a, **how))[1])
    assert run("run", "--prompt", "0", "--ci") == 0
    assert shown[0] == {"enabled": False, "color": False}
    assert shown[1]["color"] is False
    assert "PASS" in capsys.readouterr().out


def test_an_async_agent_that_blocks_is_ended_by_its_time_out(folder, capsys) -> None:
    (folder / "echo_agent.py").write_text(
        "import threading\ngo = threading.Event()\nasync def answer(text):\n    go.wait(5)\n    return text\n"
    )
    (folder / "flakestorm.yaml").write_text(CONFIG.replace('answer"}', 'answer", timeout: 1000}'))
    assert run("run", "--prompt", "0", "-q") == 1
    assert "no answer within 1000 ms" in capsys.readouterr().out


def test_a_fault_at_a_site_that_is_never_reached_is_3(capsys) -> None:
    assert run("run", "--prompt", "0", "--inject", "tool/search#1=error") == 3


def test_chaos_and_run_with_a_profile_are_the_same(capsys) -> None:
    assert run("chaos", "--profile", "api_outage", "--seed", "1") == 3
    one = capsys.readouterr().out.splitlines()[0]
    assert run("run", "--chaos-profile", "api_outage", "--seed", "1") == 3
    assert capsys.readouterr().out.splitlines()[0] == one
