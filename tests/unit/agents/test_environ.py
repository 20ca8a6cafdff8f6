import os

import pytest

from flakestorm.agents.environ import in_environ, inherited


def test_variables_are_there_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_OLD", "before")
    monkeypatch.delenv("X_NEW", raising=False)
    with in_environ({"X_OLD": "during", "X_NEW": "during"}):
        assert (os.environ["X_OLD"], os.environ["X_NEW"]) == ("during", "during")
    assert os.environ["X_OLD"] == "before"
    assert "X_NEW" not in os.environ


def test_programs_inherit_all_but_what_is_for_flakestorm_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAKESTORM_SIGNING_KEY", "secret")
    monkeypatch.setenv("FLAKESTORM_TRUST_KEY", "secret")
    monkeypatch.setenv("ANYTHING_ELSE", "x")
    found = inherited()
    assert not {"FLAKESTORM_SIGNING_KEY", "FLAKESTORM_TRUST_KEY"} & set(found)
    assert found["ANYTHING_ELSE"] == "x"
