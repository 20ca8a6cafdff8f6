import json

import pytest

from unit_cli import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_config_it_shows_what_would_be_sent(capsys) -> None:
    assert run("mutate", "Book a flight to Oslo", "--type", "noise", "--count", "3", "--seed", "1") == 0
    said = capsys.readouterr().out
    assert "noise  (weight 0.8)" in said
    assert "3 mutations, seed 1" in said


def test_the_same_seed_shows_the_same_as_json(capsys) -> None:
    shown = []
    for _ in range(2):
        assert run("mutate", "hello there", "--seed", "7", "--format", "json") == 0
        shown.append(json.loads(capsys.readouterr().out))
    assert shown[0] == shown[1]
    assert {one["type"] for one in shown[0]} >= {"paraphrase", "prompt_injection"}


def test_requests_are_told_in_words_and_what_is_missing_is_said(capsys) -> None:
    assert run("mutate", "hi", "--type", "concurrent_request_pattern", "--count", "1000", "--seed", "1") == 0
    shown = capsys.readouterr()
    assert "at once" in shown.out
    assert "there are no more distinct ones" in shown.err


def test_the_config_is_asked_where_there_is_one(folder, capsys) -> None:
    (folder / "flakestorm.yaml").write_text(
        "agent: {type: python, endpoint: 'a:b'}\ngolden_prompts: [x]\n"
        "mutations: {types: [custom], custom_templates: {polite: 'Dear sir, {prompt}'}}\n"
    )
    assert run("mutate", "help me") == 0
    assert "polite [benign]: Dear sir, help me" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["nose", "custom"])
def test_an_unknown_type_is_refused(kind, capsys) -> None:
    assert run("mutate", "x", "--type", kind) == 2
    assert kind in capsys.readouterr().err
