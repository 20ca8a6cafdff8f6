import asyncio
import signal

import pytest

import flakestorm
from flakestorm import api
from flakestorm.api import Options
from flakestorm.engine.events import Finished, RunFinished
from flakestorm.errors import ConfigError, Misuse

AGENT = """
import httpx

def answer(text):
    reply = httpx.get("{url}/search")
    return "found" if reply.status_code == 200 else f"search answered {{reply.status_code}}"
"""
CONFIG = """
version: "2.0"
agent: {{type: python, endpoint: "{module}:answer"}}
golden_prompts: [hello, bye]
boundary: {{tools: {{search: "*/search"}}}}
invariants: [{{id: top, type: output_not_empty}}]
contract:
  name: finds
  invariants: [{{id: finds, type: contains, value: found, severity: critical}}]
  chaos_matrix:
    - {{name: calm}}
    - {{name: down, tool_faults: [{{tool: search, mode: error}}]}}
chaos: {{tool_faults: [{{tool: search, mode: error, error_code: 500}}]}}
"""


@pytest.fixture
def project(tmp_path, request):
    from upstream import Upstream, document

    module = f"agent_{abs(hash(request.node.name))}"
    with Upstream() as up:
        up.reply("/search", document({}))
        (tmp_path / f"{module}.py").write_text(AGENT.format(url=up.url))
        (tmp_path / "flakestorm.yaml").write_text(CONFIG.format(module=module))
        yield flakestorm.load(tmp_path / "flakestorm.yaml"), Options(tapes=tmp_path / "tapes", seed=1), up


def test_the_exported_names() -> None:
    assert flakestorm.__all__ == [
        "Comparison",
        "Forked",
        "Options",
        "Project",
        "Report",
        "TapeMismatch",
        "Terms",
        "__version__",
        "compare",
        "fork",
        "load",
        "record",
        "replay",
    ]
    assert all(getattr(flakestorm, name) for name in flakestorm.__all__)
    assert dir(flakestorm) == sorted(flakestorm.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = flakestorm.nope


def test_contract(project) -> None:
    loaded, options, up = project
    report = loaded.contract(options)
    assert (report.verdict, report.exit_code, report.command) == ("fail", 1, "contract run")
    assert [(c.scenario, c.verdict) for c in report.cells] == [("calm", "pass")] * 2 + [("down", "fail")] * 2
    assert up.count("/search") == 2
    assert "tool/search#1=error" in report.runs[2].reproduce


def test_an_async_agent_is_held_on_its_own_loop(project, tmp_path) -> None:
    _, options, up = project
    (tmp_path / "async_agent.py").write_text(
        "import httpx\nasync def answer(text):\n    async with httpx.AsyncClient() as client:\n"
        f"        reply = await client.get('{up.url}/search')\n"
        "    return 'found' if reply.status_code == 200 else str(reply.status_code)\n"
    )
    (tmp_path / "flakestorm.yaml").write_text(CONFIG.format(module="async_agent"))
    report = flakestorm.load(tmp_path / "flakestorm.yaml").contract(options)
    assert [run.output for run in report.runs] == ["found", "found", "503", "503"]
    assert [run.calls["tool"] for run in report.runs] == [1, 1, 1, 1]
    assert up.count("/search") == 2


def test_chaos_uses_the_configs_block_and_the_top_level_invariants(project) -> None:
    loaded, options, up = project
    report = loaded.chaos(options=options)
    assert [(c.invariant, c.verdict) for c in report.cells] == [("top", "pass")] * 2
    assert report.scores["chaos"].value == 1.0
    assert report.runs[0].output == "search answered 500"
    assert up.count("/search") == 0


def test_inject_judges_every_invariant_on_one_run(project) -> None:
    loaded, options, _ = project
    report = loaded.inject(1, ["tool/search#1=error:418"], options)
    assert [(r.scenario, r.prompt, r.output) for r in report.runs] == [
        ("injected", 1, "search answered 418"),
        ("no chaos", 1, "found"),
    ]
    assert {c.invariant: c.verdict for c in report.cells} == {"finds": "fail", "top": "pass"}


def test_probe_asks_once_and_judges_completion(project) -> None:
    loaded, options, _ = project
    report, census = loaded.probe(options)
    assert (report.exit_code, len(report.runs), report.runs[0].seen) == (0, 1, ("search",))
    assert census.seams["httpx"] == 1


def test_check_runs_nothing(project) -> None:
    loaded, _, up = project
    assert len(loaded.check().trials) == 4
    assert up.count() == 0


def test_the_listener_hears_of_every_run_and_of_the_end(project) -> None:
    loaded, options, _ = project
    heard = []
    loaded.contract(Options(tapes=options.tapes, listener=heard.append))
    assert sum(isinstance(event, RunFinished) for event in heard) == 4
    assert isinstance(heard[-1], Finished)


def test_it_works_where_an_event_loop_is_running_already(project) -> None:
    loaded, options, _ = project

    async def notebook():
        return loaded.contract(options)

    assert asyncio.run(notebook()).exit_code == 1


def test_signal_handlers_are_put_back(project) -> None:
    loaded, options, _ = project
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    loaded.probe(options)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_misuse(project, tmp_path) -> None:
    loaded, _, _ = project
    with pytest.raises(Misuse, match="numbered 0 to 1"):
        loaded.inject(2)
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        flakestorm.load(tmp_path / "none.yaml")
    (tmp_path / "file").write_text("")
    with pytest.raises(Misuse, match="tapes cannot be written"):
        loaded.contract(Options(tapes=tmp_path / "file" / "tapes"))
    assert api.load is flakestorm.load


def test_a_pattern_that_backtracks_for_ever_is_ended(tmp_path, monkeypatch) -> None:
    from flakestorm.contracts import searching

    monkeypatch.setattr(searching, "LIMIT_S", 1)
    (tmp_path / "babbling_agent.py").write_text("def answer(text):\n    return 'a' * 40 + '!'\n")
    (tmp_path / "flakestorm.yaml").write_text(
        CONFIG.format(module="babbling_agent")
        .replace("type: contains, value: found", "type: regex, pattern: '^(a+)+$'")
        .replace("{name: down,", "{name: down2,")
    )
    report = flakestorm.load(tmp_path / "flakestorm.yaml").contract(Options(tapes=tmp_path / "tapes"))
    assert report.exit_code == 3
    assert "the search was given up after 1 s on 41 characters" in report.cells[0].reason


@pytest.mark.parametrize(
    ("entry", "message"),
    [("CUST-(", "no regular expression that RE2 knows"), ("$.user[", "no JSON path from position")],
)
def test_what_redact_does_not_understand_is_refused(tmp_path, entry: str, message: str) -> None:
    text = CONFIG.format(module="x")
    (tmp_path / "flakestorm.yaml").write_text(text.replace("boundary: {", f"boundary: {{redact: ['{entry}'], "))
    with pytest.raises(Misuse, match=message):
        flakestorm.load(tmp_path / "flakestorm.yaml").check()
