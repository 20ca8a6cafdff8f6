"""Helpers for tests of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from flakestorm.config.load import loads
from flakestorm.config.model import Config
from flakestorm.errors import ConfigError

BASE = "agent: {endpoint: 'http://127.0.0.1:1/'}\ngolden_prompts: [hello]\n"


def config(extra: str = "", *, variables: Mapping[str, str] | None = None) -> Config:
    """A minimal configuration and more lines (which begin on line 3)."""
    return loads(BASE + extra, file="f.yaml", variables=variables or {})


def complaints(extra: str, *, variables: Mapping[str, str] | None = None) -> list[str]:
    """What loading a minimal configuration with these lines (from line 3) complains about, without the file's name."""
    with pytest.raises(ConfigError) as caught:
        config(extra, variables=variables)
    return [line.removeprefix("f.yaml:") for line in str(caught.value).splitlines()]


def refused(values: Mapping[str, Any], model: type[Any]) -> str:
    """The text of the error with which a model refuses these values."""
    with pytest.raises(ValueError) as caught:
        model.of(values)
    return str(caught.value)
