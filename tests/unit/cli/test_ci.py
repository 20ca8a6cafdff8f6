import json

import pytest

from flakestorm import api
from flakestorm.cli.ci import JUDGES, configured
from flakestorm.engine.pacing import Pacing
from flakestorm.engine.whole import PHASES
from unit_cli import run

AGENT = """
import httpx

def answer(text):
    reply = httpx.get("{url}/search")
    return "found" if reply.status_code == 200 else "search is unavailable"
"""
CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "{module}:answer"}}
golden_prompts: [hello]
boundary: {{tools: {{search: "*/search"}}}}
advanced: {{seed: 3}}
invariants: [{{id: says-something, type: output_not_empty}}]
chaos: {{tool_faults: [{{tool: search, mode: error, error_code: 500}}]}}
contract:
  name: finds
  invariants: [{{id: admits, type: contains, value: "{word}", severity: {severity}, when: tool_faults_active}}]
  chaos_matrix: [{{name: chaos, tool_faults: [{{tool: search, mode: error}}]}}]
"""


@pytest.fixture
def project(tmp_path, monkeypatch, request):
    from upstream import Upstream, document

    module = f"agent_{abs(hash(request.node.name))}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    with Upstream() as up:
        up.reply("/search", document({}))
        (tmp_path / f"{module}.py").write_text(AGENT.format(url=up.url))

        def write(*, word="unavailable", severity="critical", more=""):
            text = CONFIG.format(module=module, word=word, severity=severity) + more
            (tmp_path / "flakestorm.yaml").write_text(text)

        write()
        yield write


def test_every_phase_runs_and_the_whole_is_one_report(project, tmp_path, capsys) -> None:
    assert run("ci", "--format", "json", "-o", "out/ci.json") == 0
    document = json.loads((tmp_path / "out" / "ci.json").read_text())
    assert {name: found["value"] for name, found in document["scores"].items()} == {
        "chaos": 1.0, "contract": 100.0, "overall": 1.0,
    }  # fmt: skip
    assert [(p["name"], p["status"], p["report"]) for p in document["phases"]] == [
        ("chaos", "done", "ci.phases/chaos.json"),
        ("contract", "done", "ci.phases/contract.json"),
    ]
    assert [s["name"] for s in document["scenarios"]] == ["chaos", "chaos (contract)"]
    assert all((tmp_path / "out" / one["tape"]).is_file() for one in document["runs"])
    assert {cell["run"] for cell in document["cells"]} == {one["id"] for one in document["runs"]}


def test_its_phases_use_up_one_rate(project, monkeypatch) -> None:
    monkeypatch.setattr("flakestorm.api.outfit.Pacing", None)  # a phase makes none of its own
    started: list[str] = []
    monkeypatch.setattr(Pacing, "started", lambda _, run: started.append(run))
    assert run("ci", "-q") == 0
    assert len(started) >= 2


def test_a_critical_failure_fails_it_and_another_is_for_the_score(project, capsys) -> None:
    project(word="never said")
    assert run("ci", "-q") == 1
    assert capsys.readouterr().out.startswith("fail: contract: a promise was broken: admits (critical)")
    project(word="never said", severity="high")
    assert run("ci", "-q") == 0
    assert run("ci", "-q", "--min-score", "0.6") == 1
    assert "the overall score 0.5 is below the 0.6 asked for" in capsys.readouterr().out


def test_mutations_are_a_phase(project, capsys) -> None:
    project(more="mutations: {types: [noise], count: 3}")
    assert run("ci", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [phase["name"] for phase in document["phases"]] == ["mutation", "chaos", "contract"]
    assert document["scores"]["robustness"]["conclusive"] == 3
    sent = [one["mutation"] for one in document["runs"] if one["id"].startswith("mutation/")]
    assert {m["type"] for m in sent} == {"noise"}


def test_history_makes_a_trend(project, tmp_path, capsys) -> None:
    assert run("ci") == 0
    assert "trend:" not in capsys.readouterr().out
    project(word="never said", severity="high")
    assert run("ci") == 0
    said = capsys.readouterr().out
    assert "1.000 -> 0.500 (last 2, -0.500)" in said
    assert run("report", "latest", "--format", "html") == 0
    pages = sorted((tmp_path / "reports").glob("*-ci*/report.html"))
    assert 'data-testid="trend"' in pages[-1].read_text()
    assert 'href="./contract.html"' in pages[-1].read_text()
    assert (pages[-1].parent / "contract.html").is_file()


def test_only_ends_of_the_same_config_make_the_trend(project, tmp_path, capsys) -> None:
    (tmp_path / "other.yaml").write_text((tmp_path / "flakestorm.yaml").read_text())
    assert run("ci", "-c", "other.yaml") == 0
    assert run("ci") == 0
    assert "trend:" not in capsys.readouterr().out


def test_a_finished_phase_is_not_run_again(project, tmp_path, monkeypatch, capsys) -> None:
    """The contract phase is stopped before it begins; chaos has been judged by then."""
    from flakestorm.cli import ci as module

    asked = []

    def stopped(loaded, options):
        asked.append("contract")
        raise KeyboardInterrupt

    monkeypatch.setitem(module.JUDGES, "contract", stopped)
    assert run("ci", "-o", "one.html") == 130
    saved = tmp_path / "one.phases" / "report.json"
    assert [p["status"] for p in json.loads(saved.read_text())["phases"]] == ["done", "not run"]
    monkeypatch.setitem(module.JUDGES, "contract", lambda loaded, options: loaded.contract(options))
    monkeypatch.setitem(
        module.JUDGES, "chaos", lambda loaded, options: asked.append(options.resume) or loaded.chaos(None, options)
    )
    assert run("ci", "--resume", str(saved), "-q") == 0
    assert asked == ["contract", tmp_path / "one.phases" / "chaos.json"]


def test_a_jobs_summary_is_written_where_github_wants_it(project, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "summary.md").write_text("# before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert run("ci", "-q") == 0
    assert (tmp_path / "summary.md").read_text().startswith("# before\n## ✅ Pass: flakestorm ci")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    assert run("ci", "-q") == 0
    assert "GITHUB_STEP_SUMMARY cannot be written" in capsys.readouterr().err


def test_a_config_with_nothing_to_run_is_2(project, tmp_path, capsys) -> None:
    (tmp_path / "flakestorm.yaml").write_text('version: "2.0"\nagent: {endpoint: "http://x"}\ngolden_prompts: [a]\n')
    assert run("ci") == 2
    assert "there is nothing to run" in capsys.readouterr().err


def test_what_is_configured_is_told_by_the_file(project, tmp_path) -> None:
    assert configured(api.load(tmp_path / "flakestorm.yaml")) == ["chaos", "contract"]
    project(more="mutations: {count: 10}\n")
    assert configured(api.load(tmp_path / "flakestorm.yaml")) == ["mutation", "chaos", "contract"]
    (tmp_path / "old.yaml").write_text("agent: {endpoint: 'http://x'}\ngolden_prompts: [a]\n")
    assert configured(api.load(tmp_path / "old.yaml")) == ["mutation"]
    project(more="load: {users: [1, 2]}")
    assert configured(api.load(tmp_path / "flakestorm.yaml")) == ["chaos", "contract", "load"]
    assert JUDGES.keys() == PHASES.keys()
