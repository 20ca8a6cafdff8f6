"""What the README shows is executed: its config is judged, its commands and its Python run."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from e2e_support import FLAKESTORM, PROGRAMS, clean_env, flakestorm, world, write_config
from flakestorm.config import loads
from flakestorm.config.base import keys_of
from flakestorm.config.invariants import NEEDS
from flakestorm.config.model import Chaos, Invariant
from flakestorm.config.vocabulary import INVARIANT_TYPES
from flakestorm.contracts.base import invariants
from flakestorm.contracts.base import settings as needs
from flakestorm.errors import Misuse
from flakestorm.faults.base import llm_faults
from flakestorm.faults.planned import parse_injection
from flakestorm.faults.schedule import Schedule
from standing_support import agent_at, free_port

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


def test_the_script_for_agents_started_elsewhere_runs(project) -> None:
    folder, env = project
    page = (ROOT / "docs" / "how-to" / "agents-started-elsewhere.md").read_text()
    (script,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    port = str(free_port())
    config = yaml.safe_load((folder / "flakestorm.yaml").read_text())
    config["agent"] = agent_at(f"http://127.0.0.1:{port}")
    write_config(folder, **{**config, "contract": {**config["contract"], "chaos_matrix": [{"name": "calm"}]}})
    script = script.replace("flakestorm ", f"{FLAKESTORM} ").replace("python ", f"{sys.executable} ")
    script = script.replace("8000", port) + "kill $!; wait\n"
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=clean_env(env), capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode in (0, 143), done.stderr
    (report,) = (folder / "reports").glob("*/report.json")
    assert json.loads(report.read_text())["runs"][0]["calls"]["llm"] == 2, done.stdout + done.stderr


def test_the_python_shown_runs(project) -> None:
    folder, env = project
    script, test = blocks("python")
    assert test in (ROOT / "docs" / "how-to" / "pytest.md").read_text()  # where it is run
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=clean_env(env), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pass ")


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_the_faults_that_pages_show_can_be_played(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        if block.startswith("version:"):  # a whole config
            contract = loads(block).contract
            if contract is None:  # nothing is broken there
                continue
            planned = [Schedule.of(scenario).planned for scenario in contract.chaos_matrix if scenario.chaos]
            if not planned:
                continue
        elif set(shown := yaml.safe_load(block)) <= set(keys_of(Chaos)):
            planned = [Schedule.of(Chaos.of(shown)).planned]
        else:  # what plug-ins bring, and other parts of a config, have tests of their own
            continue
        assert any(planned)


def test_the_page_of_model_faults_has_every_mode_and_its_main_setting() -> None:
    page = (ROOT / "docs" / "reference" / "model-faults.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \|.*?\|([^|]*)\|$", page, re.MULTILINE))
    assert set(rows) == set(llm_faults)
    for mode, settings in rows.items():
        bold = re.findall(r"\*\*`(\w+)`\*\*", settings)
        setting = {"form": "answer" if mode == "content_filter" else "invalid_json", "drift_type": "tone_shift"}
        if not bold:
            with pytest.raises(Misuse, match="takes no argument"):
                parse_injection(f"llm/m#1={mode}:9")
            continue
        given = setting.get(bold[0], "500")
        spec = parse_injection(f"llm/m#1={mode}:{given}").spec
        assert str(getattr(spec, bold[0])) == given


def test_the_page_of_invariants_has_every_type_and_its_settings() -> None:
    page = (ROOT / "docs" / "reference" / "invariants.md").read_text().partition("<!-- made by")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|.*?\|([^|]*)\|$", page, re.MULTILINE))
    assert set(rows) == set(invariants) == INVARIANT_TYPES.words
    for name, settings in rows.items():
        invariants.get(name)  # imported when it is asked for, and what it needs with it
        named = re.findall(r"`(\w+)`", settings)
        bold = re.findall(r"\*\*`(\w+)`\*\*", settings)
        keys = set(keys_of(Invariant))
        assert set(named) <= keys, name
        assert bold == [need.rstrip("_") for need in needs[name]] == list(NEEDS.get(name, ())), name
    for block in re.findall(r"```yaml\n(invariants:.*?)```", page, re.DOTALL):
        for rule in yaml.safe_load(block)["invariants"]:
            assert Invariant.of(rule).type in rows


def test_the_commands_of_the_page_on_comparing_run(tmp_path) -> None:
    page = (ROOT / "docs" / "how-to" / "compare.md").read_text()
    lines = [line[2:] for line in page.splitlines() if line.startswith("$ flakestorm ")]
    assert len(lines) == 6
    (tmp_path / "agent.py").write_text("def answer(text):\n    return text\n")
    config = write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "agent:answer"},
        contract={"name": "x", "invariants": [{"type": "completes"}], "chaos_matrix": [{"name": "calm"}]},
    )
    for name in ("gpt-4o.yaml", "gpt-4o-mini.yaml"):
        (tmp_path / name).write_text(config.read_text())
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    for name in ("base.json", "head.json"):
        assert flakestorm(tmp_path, "contract", "run", "--trials", "60", "--seed", "1", "-o", name).code == 0
    for line in lines:
        done = flakestorm(tmp_path, *shlex.split(line)[1:])
        assert done.code in (0, 3), f"{line}: {done.out}{done.err}"
