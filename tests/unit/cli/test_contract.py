import json
import subprocess
import sys

import pytest

from flakestorm.wire.protocols import PROTOCOLS
from unit_cli import ECHO, run

CONFIG = f"{ECHO}output: {{format: json}}\n"


def test_validate_says_how_many_runs_there_would_be(folder, capsys) -> None:
    assert run("contract", "validate") == 0
    assert "1 invariant x 1 scenario x 2 prompts = 2 agent runs" in capsys.readouterr().out
    assert run("contract", "validate", "--trials", "3") == 0
    assert "1 invariant x 1 scenario x 2 prompts x 3 trials = 6 agent runs" in capsys.readouterr().out
    assert run("contract", "validate", "--trials", "9999999") == 2
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


def test_score_has_a_gate_and_a_report(folder, capsys) -> None:
    config = folder / "flakestorm.yaml"
    config.write_text(CONFIG.replace('"you said"', "hello"))
    assert run("contract", "score") == 1
    assert capsys.readouterr().out == "50\n"
    assert run("contract", "score", "--min-score", "50") == 0
    assert run("contract", "score", "--min-score", "51") == 1
    capsys.readouterr()
    assert run("contract", "score", "--format", "json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["command"], document["scores"]["contract"]["value"]) == ("contract run", 50.0)
    assert {cell["min_pass_rate"] for cell in document["cells"]} == {1.0}
    assert run("contract", "score", "-o", "out.json") == 1
    assert json.loads((folder / "out.json").read_text())["exit_code"] == 1


def test_an_agent_that_goes_elsewhere_takes_no_report_with_it(folder, tmp_path_factory, capsys) -> None:
    away = tmp_path_factory.mktemp("away")
    (folder / "echo_agent.py").write_text(
        f"import os\ndef answer(text):\n    os.chdir({str(away)!r})\n    return f'you said {{text}}'\n"
    )
    assert run("contract", "run", "-o", "out/report.json") == 0
    assert (folder / "out" / "report.json").exists()
    assert len(list(folder.glob("out/report.tapes/*.tape"))) == 2
    assert list(away.iterdir()) == []


FAULTY = """
chaos:
  tool_faults:
    - mode: error
    - {mode: error, site: nowhere}
"""
ATTACKING = """
chaos:
  context_attacks:
    memory_poisoning: {enabled: false}

    overflow: {inject_at: input}
"""


@pytest.mark.parametrize(
    ("written", "where"),
    [
        (
            CONFIG.replace('type: contains, value: "you said"', "type: json_schema, schema: {type: 5}"),
            "7: contract.invariants[0]",
        ),
        (CONFIG.replace('type: contains, value: "you said"', "type: excludes_pii, entities: [X]"), "7: contract.inv"),
        (
            CONFIG.replace("{name: calm}", "{name: a, llm_faults: [{mode: refusal, site: nowhere}]}"),
            "8: contract.chaos_matrix[0]",
        ),
        (CONFIG + FAULTY, "14: chaos.tool_faults[1]"),
        (CONFIG + ATTACKING, "15: chaos.context_attacks.overflow"),
    ],
)
def test_validate_says_where_something_is_not_available(folder, capsys, written, where) -> None:
    (folder / "flakestorm.yaml").write_text(written)
    assert run("contract", "validate") == 2
    assert f"flakestorm.yaml:{where}" in capsys.readouterr().err


AGENT_AND_COMMAND = """
import sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

class Agent(BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'"you said so"')

agent = HTTPServer(("127.0.0.1", 0), Agent)
threading.Thread(target=agent.serve_forever, daemon=True).start()
config = Path("flakestorm.yaml")
config.write_text(config.read_text().replace("PORT", str(agent.server_port)))
from flakestorm.cli.main import main
try:
    main(["contract", "run"])
except SystemExit as end:
    print(end.code, *sys.modules)
"""
UNUSED = {
    "aiohttp", "h11", "httpx", "importlib.abc", "importlib.metadata", "importlib.resources", "pydantic",
    "pydantic_core", "re2", "rich", "zipfile",
    *(f"flakestorm.faults.{name}" for name in ("context", "drift", "llm", "staging", "tool", "tool_result")),
    *(f"flakestorm.contracts.{name}" for name in ("safety", "trajectory")),
    *(f"flakestorm.wire.{protocol.home.partition(':')[0]}" for protocol in PROTOCOLS),
    "flakestorm.agents.process", "flakestorm.boundary.gateway", "flakestorm.boundary.inprocess", "flakestorm.patterns",
    "flakestorm.wire.mcp.protocol",
}  # fmt: skip
LATER = {
    "jinja2", "lzma", "random", "secrets", "shutil", "sqlite3", "tempfile",
    "flakestorm.reports.document", "flakestorm.reports.html", "flakestorm.reports.terminal",
    "flakestorm.store.sqlite", "flakestorm.tape.reader", "flakestorm.wire.base",
}  # fmt: skip


def test_a_contract_imports_only_what_it_uses(folder) -> None:
    """Against an agent that somebody else started: no HTTP library but the small one, no protocol, no unused fault."""
    matrix = "{name: calm}, {name: down, tool_faults: [{mode: error}], llm_faults: [{mode: empty}]}"
    config = CONFIG.replace('type: python, endpoint: "echo_agent:answer"', 'endpoint: "http://127.0.0.1:PORT/"')
    (folder / "flakestorm.yaml").write_text(config.replace("{name: calm}", matrix).replace("json}", "html}"))
    done = subprocess.run(
        [sys.executable, "-c", AGENT_AND_COMMAND], cwd=folder, capture_output=True, text=True, check=True
    )
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "3", done.stderr
    assert {"flakestorm.reports.html", "flakestorm.agents.http", "flakestorm.contracts.output"} <= set(modules)
    assert sorted(UNUSED & set(modules)) == []


def test_what_is_shown_and_saved_at_the_end_does_not_hold_up_the_beginning() -> None:
    code = (
        "import sys, flakestorm.cli.contract, flakestorm.agents.http, flakestorm.reports.progress, "
        "flakestorm.store.saving, flakestorm.boundary.announcing\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted((LATER | UNUSED) & set(done.stdout.split())) == []
