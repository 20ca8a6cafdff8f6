import os
from pathlib import Path

import pytest

from agents_support import config
from flakestorm.agents.environ import folder_of, in_environ, inherited
from flakestorm.errors import ConfigError


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


def test_the_folder_is_the_configs_or_the_one_it_names(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "file").write_text("")
    command = {"type": "command", "start": "cat"}
    assert folder_of(config(tmp_path, **command)) == tmp_path
    assert folder_of(config(tmp_path, **command, cwd="agents")) == tmp_path / "agents"
    with pytest.raises(ConfigError, match=r"agnets does not exist; did you mean 'agents'\?$"):
        folder_of(config(tmp_path, **command, cwd="agnets"))
    with pytest.raises(ConfigError, match=r"^agent\.cwd: .*/a/b does not exist$"):
        folder_of(config(tmp_path, **command, cwd="a/b"))
    with pytest.raises(ConfigError, match="is a file"):
        folder_of(config(tmp_path, **command, cwd="file"))
