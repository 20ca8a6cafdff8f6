import pytest

from unit_cli import run

CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "echo_agent:answer"}
golden_prompts: [hello, bye]
contract:
  name: echo
  invariants: [{id: echoes, type: contains, value: "you said"}]
  chaos_matrix: [{name: calm}]
output: {format: json}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "echo_agent.py").write_text("def answer(text):\n    return f'you said {text}'\n")
    (tmp_path / "flakestorm.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_validate_says_how_many_runs_there_would_be(folder, capsys) -> None:
    assert run("contract", "validate") == 0
    assert "1 invariant x 1 scenario x 2 prompts = 2 agent runs" in capsys.readouterr().out
    assert not (folder / "reports").exists()


def test_run_judges_and_reports(folder, capsys) -> None:
    assert run("contract", "run", "--no-color") == 0
    (report,) = (folder / "reports").glob("*/report.json")
    assert len(list(report.parent.glob("tapes/*.tape"))) == 2
    assert "PASS" in capsys.readouterr().out


def test_score_prints_the_number_and_nothing_else(folder, capsys) -> None:
    """Not even what the agent prints."""
    (folder / "echo_agent.py").write_text("def answer(text):\n    print('thinking')\n    return f'you said {text}'\n")
    assert run("contract", "score") == 0
    shown = capsys.readouterr()
    assert shown.out == "100\n"
    assert "thinking" in shown.err


def test_an_agent_that_goes_elsewhere_takes_no_report_with_it(folder, tmp_path_factory, capsys) -> None:
    away = tmp_path_factory.mktemp("away")
    (folder / "echo_agent.py").write_text(
        f"import os\ndef answer(text):\n    os.chdir({str(away)!r})\n    return f'you said {{text}}'\n"
    )
    assert run("contract", "run", "-o", "out/report.json") == 0
    assert (folder / "out" / "report.json").exists()
    assert len(list(folder.glob("out/report.tapes/*.tape"))) == 2
    assert list(away.iterdir()) == []


def test_validate_finds_what_is_not_available(folder, capsys) -> None:
    config = folder / "flakestorm.yaml"
    config.write_text(CONFIG.replace('type: contains, value: "you said"', "type: similarity, expected: x"))
    assert run("contract", "validate") == 2
    assert "not available in this version" in capsys.readouterr().err
