import pytest

from flakestorm.config.blocks import blocks_in
from flakestorm.errors import ConfigError


def test_what_was_written_down_is_told_apart_from_what_has_a_default(tmp_path) -> None:
    (tmp_path / "f.yaml").write_text("agent: {endpoint: x}\nmutations:\n")
    assert blocks_in(tmp_path / "f.yaml") == {"agent", "mutations"}
    (tmp_path / "g.yaml").write_text("- a list")
    assert blocks_in(tmp_path / "g.yaml") == frozenset()
    with pytest.raises(ConfigError, match="no such file"):
        blocks_in(tmp_path / "none.yaml")
