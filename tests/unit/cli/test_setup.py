import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from flakestorm.config import load
from unit_cli import run


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


def test_init_writes_where_it_is_told_and_names_that_file_in_the_next_step(folder, capsys) -> None:
    for words, written in (
        (["my dir/a.yaml"], "'my dir/a.yaml'"),
        (["-o", "b.yaml"], "b.yaml"),
        (["-c", "c.yaml"], "c.yaml"),
        (["my dir"], "'my dir/flakestorm.yaml'"),
    ):
        assert run("init", "--no-probe", *words) == 0
        said = capsys.readouterr().out
        assert f"`flakestorm verify -c {written}`, then `flakestorm contract run -c {written}`" in said
        assert Path(written.strip("'")).is_file()
    assert run("init", "--no-probe") == 0
    assert "`flakestorm verify`, then `flakestorm contract run`" in capsys.readouterr().out


def test_schema_accepts_the_starter(folder, capsys) -> None:
    run("init")
    capsys.readouterr()
    assert run("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.validate(yaml.safe_load((folder / "flakestorm.yaml").read_text()), schema)
    assert run("schema", "-o", "new/schema.json") == 0
    assert json.loads((folder / "new" / "schema.json").read_text()) == schema
    assert run("schema", "-o", str(folder)) == 2
    assert str(folder) in capsys.readouterr().err


def test_profiles_are_listed_with_their_faults(folder, capsys) -> None:
    assert run("profiles") == 0
    shown = capsys.readouterr().out
    assert run("profiles", "-o", "profiles.txt") == 0
    assert (folder / "profiles.txt").read_text() == shown
    assert "api_outage: " in shown
    assert "tool/*=error:503" in shown
    assert run("profiles", "--format", "json") == 0
    assert {p["name"] for p in json.loads(capsys.readouterr().out)} >= {
        "api_outage",
        "lying_tools",
        "flaky_network",
        "mcp_chaos",
    }
