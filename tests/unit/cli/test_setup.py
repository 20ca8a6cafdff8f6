import json

import jsonschema
import pytest
import yaml

from flakestorm.config import load
from unit_cli import run
from upstream import Upstream, document


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_writes_a_config_that_loads_and_does_not_overwrite_one(folder, capsys) -> None:
    assert run("init") == 0
    assert load(folder / "flakestorm.yaml").golden_prompts
    assert run("init") == 2
    assert "--force" in capsys.readouterr().err
    assert run("init", "--force") == 0
    assert run("init", "sub/other.yaml") == 0
    assert (folder / "sub" / "other.yaml").exists()


def test_schema_accepts_the_starter(folder, capsys) -> None:
    run("init")
    capsys.readouterr()
    assert run("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.validate(yaml.safe_load((folder / "flakestorm.yaml").read_text()), schema)
    assert run("schema", "-o", "schema.json") == 0
    assert json.loads((folder / "schema.json").read_text()) == schema


def test_profiles_are_listed_with_their_faults(capsys) -> None:
    assert run("profiles") == 0
    shown = capsys.readouterr().out
    assert "api_outage: " in shown
    assert "tool/*=error:503" in shown
    assert run("profiles", "--format", "json") == 0
    assert {p["name"] for p in json.loads(capsys.readouterr().out)} >= {"api_outage", "degraded_llm", "high_latency"}


def test_verify_tells_what_works_and_what_does_not(folder, capsys) -> None:
    with Upstream() as up:
        up.reply("/invoke", document({"output": "hello"}))
        (folder / "flakestorm.yaml").write_text(
            f"agent: {{endpoint: '{up.url}/invoke'}}\ngolden_prompts: [a]\ninvariants: [{{type: completes}}]\n"
        )
        assert run("verify") == 0
        shown = capsys.readouterr().out
        assert "agent: answers" in shown
        assert "no call crossed it" in shown
    assert run("verify") == 3
    assert "not reachable" in capsys.readouterr().out


def in_process(folder, code: str) -> None:
    (folder / "quiet_agent.py").write_text(code)
    (folder / "flakestorm.yaml").write_text(
        "agent: {type: python, endpoint: 'quiet_agent:answer'}\ngolden_prompts: [a]\ninvariants: [{type: completes}]\n"
    )


def test_verify_gives_its_hint_only_where_it_helps(folder, capsys) -> None:
    in_process(folder, "def answer(text):\n    print('noise')\n    return text\n")
    assert run("verify") == 0
    shown = capsys.readouterr()
    assert "no call crossed it" in shown.out
    assert "no fault can reach" not in shown.out
    assert "noise" not in shown.out


def test_verify_obeys_no_escape_sequence_of_an_agent(folder, capsys) -> None:
    in_process(folder, "def answer(text):\n    raise ValueError('\\x1b[2Jgone')\n")
    assert run("verify") == 3
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b[2Jgone" in shown
