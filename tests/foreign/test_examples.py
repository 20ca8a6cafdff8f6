"""The example in Node does what its README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples_support import NODE, Example, copied, try_out
from foreign_support import FOREIGN, needs_node

pytestmark = needs_node


@pytest.mark.parametrize("example", NODE, ids=lambda example: example.name)
def test_one_command_shows_what_its_readme_says(example: Example, tmp_path: Path) -> None:
    root = copied(tmp_path)
    assert (FOREIGN / "node_modules").is_dir(), "the packages are not installed; run `make foreign`"
    (root / "examples" / example.name / "node_modules").symlink_to(FOREIGN / "node_modules")
    try_out(example, root, again=True)
