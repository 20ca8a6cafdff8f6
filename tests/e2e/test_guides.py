"""What guides and explanations show is done, and whatever command or key they name exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from scripts.links import ROOT, pages

from config_legacy import LEGACY
from e2e_support import clean_env, flakestorm, write_config
from flakestorm.cli.main import cli
from flakestorm.config.base import keys_of
from flakestorm.config.model import Config
from flakestorm.importers import files
from pages_support import DOCS, Reader, commands, steps
from upstream import Upstream, document

GUIDES = DOCS / "how-to"
AGENT = "def answer(text: str) -> str:\n    return 'There is a flight.'\n"


def project(folder: Path) -> None:
    """An agent, and a config as version 2.0 of flakestorm had them."""
    (folder / "my_agent.py").write_text(AGENT)
    (folder / "inbox.jsonl").write_text('{"text": "See you at nine."}\n')
    write_config(
        folder,
        agent={"type": "python", "endpoint": "my_agent:answer"},
        contract={"name": "x", "invariants": [{"type": "completes"}], "chaos_matrix": [{"name": "calm"}]},
    )


@pytest.mark.parametrize(
    "page",
    [
        "explanation/statistics.md",
        "explanation/verdicts.md",
        "how-to/import-traces.md",
        "how-to/write-an-importer.md",
        "how-to/write-an-invariant.md",
    ],
)
def test_a_page_can_be_followed(tmp_path: Path, page: str) -> None:
    Reader(tmp_path).follow(DOCS / page)


@pytest.mark.parametrize(
    "page", ["explanation/patterns.md", "how-to/ci.md", "how-to/cut-cost.md", "how-to/migrate-from-flakestorm-2.md"]
)
def test_the_commands_of_a_page_run_in_a_project(tmp_path: Path, page: str) -> None:
    project(tmp_path)
    Reader(tmp_path).follow(DOCS / page)


def test_an_agent_is_found_and_attached(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(AGENT)
    reader = Reader(tmp_path, instead={"flakestorm init": "flakestorm init --no-probe"})  # nobody else's is asked
    reader.follow(GUIDES / "attach-an-agent.md")
    assert "my_agent:answer" in (tmp_path / "flakestorm.yaml").read_text()


def test_a_program_and_a_function_are_recorded_and_do_the_same_again(tmp_path: Path) -> None:
    page = GUIDES / "record-and-replay.md"
    (tmp_path / "agent.py").write_text(
        "import os, sys, urllib.request as r\nprint(sys.argv[1], r.urlopen(os.environ['SEARCH_URL']).read())\n"
    )
    (python,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    book = "import httpx, os\nbook = lambda text: text + httpx.get(os.environ['SEARCH_URL']).text\n"
    with Upstream() as up:
        up.reply("/search", document({"flights": 3}))
        env = {"SEARCH_URL": f"{up.url}/search"}
        Reader(tmp_path, env).follow(page)
        assert up.count() == 1
        done = subprocess.run(
            [sys.executable, "-c", book + python],
            cwd=tmp_path,
            env=clean_env(env),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, up.count()) == (0, 2), done.stderr


def test_pages_that_show_something_to_run_have_a_test_that_runs_it() -> None:
    tests = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    for page in DOCS.rglob("*.md"):
        shows = re.search(r"^```(console|python)$", page.read_text("utf-8"), re.MULTILINE)
        if shows and page.parent.name not in ("tutorial", "reference"):
            assert f"{page.name}" in tests, page


def test_what_tracefork_users_record_is_played_again(tmp_path: Path) -> None:
    Reader(tmp_path).follow(GUIDES / "migrate-from-tracefork.md")
    again = "import flakestorm, booking; print(flakestorm.replay('booking.tape', booking.book))"
    with Upstream() as up:
        up.reply("/search", document({"flights": 3}))
        for script in (["record_it.py"], ["-c", again]):
            done = subprocess.run(
                [sys.executable, *script],
                cwd=tmp_path,
                env=clean_env({"SEARCH_URL": f"{up.url}/search"}),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        assert up.count() == 1
    assert done.stdout == "a flight to Oslo: 3 flights\n"


def test_the_rule_of_a_plug_in_is_found(tmp_path: Path) -> None:
    project(tmp_path)
    page = (GUIDES / "write-an-invariant.md").read_text("utf-8")
    (described,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    place = tmp_path / "site"
    info = place / "my_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (rule,) = [step for step in steps(page) if step.name == "my_rules.py"]
    (place / "my_rules.py").write_text(rule.text)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-rules\nVersion: 1.0\n")
    (point,) = re.findall(r"says_please = \"(.*)\"", described)
    (info / "entry_points.txt").write_text(f"[flakestorm.invariants]\nsays_please = {point}\n")
    config = (tmp_path / "flakestorm.yaml").read_text()
    (tmp_path / "flakestorm.yaml").write_text(config.replace("type: completes", "type: says_please"))
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "flakestorm", "contract", "run"],
        cwd=tmp_path,
        env={**clean_env(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "no 'please' in" in done.stdout) == (1, True), done.stdout + done.stderr


def test_a_profile_of_ones_own_is_played(tmp_path: Path) -> None:
    page = (DOCS / "explanation" / "faults.md").read_text("utf-8")
    (profile,) = re.findall(r"```yaml\n(# black-friday.yaml.*?)```", page, re.DOTALL)
    (tmp_path / "black-friday.yaml").write_text(profile)
    (tmp_path / "my_bots.py").write_text(
        "def pay(eur): return 'paid'\nTOOLS = [pay]\ndef answer(text): return pay(3)\n"
    )
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "my_bots:answer", "tools": "my_bots:TOOLS"},
        invariants=[{"type": "completes"}],
    )
    done = flakestorm(tmp_path, "chaos", "--profile", "black-friday.yaml", report=True)
    run = done.run("black-friday")
    assert run["faults"]["planned"] == 3
    assert [fired["site"] for fired in run["faults"]["fired"]] == ["tool/pay#1"]


def test_a_type_of_agent_of_ones_own_is_asked(tmp_path: Path) -> None:
    page = (GUIDES / "attach-an-agent.md").read_text("utf-8")
    (described,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    place = tmp_path / "site"
    info = place / "my_agents-1.0.dist-info"
    info.mkdir(parents=True)
    (kind,) = [step for step in steps(page) if step.name == "my_agents.py"]
    (place / "my_agents.py").write_text(kind.text)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-agents\nVersion: 1.0\n")
    (point,) = re.findall(r"^chat = \"(.*)\"", described, re.MULTILINE)
    (info / "entry_points.txt").write_text(f"[flakestorm.agents]\nchat = {point}\n")
    (tmp_path / "my_bots.py").write_text(
        "class Travel:\n    async def chat(self, text):\n        return 'the time to go is now: ' + text\n\n\n"
        "travel = Travel()\n"
    )
    (agent,) = re.findall(r"`(\{type: chat.*?\})`", page)
    (tmp_path / "flakestorm.yaml").write_text(
        f'version: "2.0"\nagent: {agent}\ngolden_prompts: [hello]\ncontract:\n  name: c\n'
        "  invariants: [{type: contains, value: 'the time to go is now: hello'}]\n  chaos_matrix: [{name: calm}]\n"
    )
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "flakestorm", "contract", "run"],
        cwd=tmp_path,
        env={**clean_env(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_importer_shown_reads_its_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (GUIDES / "write-an-importer.md").read_text("utf-8")
    module, line = re.findall(r"```python\n(?!import json)(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(module, names)
    monkeypatch.setattr(files, "FORMS", dict(files.FORMS))
    shown = type("mytool", (), {"recognises": names["recognises"], "traces": names["traces"]})
    exec(line, {"FORMS": files.FORMS, "Form": files.Form, "mytool": shown})
    told = [
        {"name": "gpt-4o", "type": "model", "in": "A flight?", "out": "NW-118"},
        {"name": "search", "type": "tool", "in": {"to": "Oslo"}, "out": {"flights": 1}},
    ]
    trace = {"id": "t", "question": "A flight?", "answer": "NW-118", "steps": told}
    (tmp_path / "a.json").write_text(json.dumps({"exporter": "my tool", "traces": [trace]}))
    (tmp_path / "b.json").write_text(json.dumps({"exporter": "my tool", "traces": [{"id": "t"}]}))
    form, (run,) = files.read_runs(tmp_path / "a.json")
    assert (form, run.input, run.output, len(run.crossings)) == ("mytool", "A flight?", "NW-118", 2)
    with pytest.raises(files.Misuse, match=r"traces\[0\]\.steps"):
        files.read_runs(tmp_path / "b.json")


def test_every_old_command_is_told_of() -> None:
    told = first_column("migrate-from-flakestorm-2.md", "Commands")
    for command in ("init", "run", "verify", "report", "score", "chaos-cmd", "ci", "contract run", "contract validate",
                    "contract score", "replay run", "replay export"):  # fmt: skip
        assert any(line == command or line.startswith(f"{command} ") for line in told), command
    told = first_column("migrate-from-tracefork.md", "Commands")
    for command in ("replay", "verify", "fork", "coalition-fork", "diff", "converge", "conflicts", "settlement-diff",
                    "report", "receipt", "release-receipt", "serve", "blame", "validate", "bench", "export", "ingest",
                    "bundle-export", "bundle-import", "prune", "proxy", "coverage", "corpus-blame", "tournament",
                    "locate", "query", "branch", "session"):  # fmt: skip
        assert any(line == command or line.startswith(f"{command} ") for line in told), command


def named() -> Iterator[tuple[str, str]]:
    """Every command line that a page shows or mentions."""
    for page in pages(ROOT):
        if page.name != "CHANGELOG.md":  # it tells of times gone by
            text = page.read_text("utf-8")
            shown = re.findall(r"`(flakestorm [a-z][^`\n]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
            for line in (*commands(text), *shown):
                if line.startswith("flakestorm "):
                    yield str(page.relative_to(ROOT)), line.replace("\\|", "|")


def problem(line: str) -> str:
    """What of a command line there is not, in words."""
    words = shlex.split(re.sub(r"[\[\]]|\.\.\.|;.*|…", " ", line), comments=True)[1:]
    command: click.Command = cli
    context = click.Context(cli)
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return "" if command.name == "certificate" else f"no command {words[0]!r}"  # it takes a report's name, too
        command, words = found, words[1:]
    known = {name for param in (*command.params, *cli.params) for name in (*param.opts, *param.secondary_opts)}
    known |= {"--help", "-h", "--version"}
    own = words[: words.index("--")] if "--" in words else words
    missing = [word for word in own if re.fullmatch(r"--?[a-z-]+", word) and word not in known]
    return f"no option {missing[0]}" if missing else ""


def test_every_command_that_a_page_names_exists() -> None:
    lines = list(named())
    assert len(lines) > 150
    assert [(page, line, why) for page, line in lines if (why := problem(line))] == []
    assert problem("flakestorm contrac run") == "no command 'contrac'"
    assert problem("flakestorm contract run --min-skore 3") == "no option --min-skore"


def first_column(page: str, section: str) -> list[str]:
    """What stands as code in the first column of a section's table."""
    text = (GUIDES / page).read_text("utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \|.*\|$", text, re.MULTILINE)
    return [word for row in rows[1:] for word in re.findall(r"`([^`]+)`", row)]


def test_every_key_of_old_configs_is_told_of_and_still_exists() -> None:
    keys = first_column("migrate-from-flakestorm-2.md", "Keys")
    written = [yaml.safe_load(text) for text in LEGACY.values()]
    used = {
        f"{block}.{key}" if isinstance(inside, dict) else block
        for config in written
        for block, inside in config.items()
        if inside is not None
        for key in (inside if isinstance(inside, dict) else [""])
    }
    assert len(used) > 30
    assert {key for key in used if not any(key == told or key.startswith(f"{told}.") for told in keys)} == set()
    for key in keys:
        block = Config
        for part in key.split("."):
            assert part in keys_of(block), key
            block = (keys_of(block)[part].blocks or (Config,))[0]
