"""The examples that are made with frameworks do what their READMEs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples_support import FRAMEWORKS, Example, copied, try_out


@pytest.mark.parametrize("example", FRAMEWORKS, ids=lambda example: example.name)
def test_one_command_shows_what_its_readme_says(example: Example, tmp_path: Path) -> None:
    try_out(example, copied(tmp_path))
