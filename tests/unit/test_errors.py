import pytest

from flakestorm import errors
from flakestorm.errors import ConfigError, MissingExtra


def test_the_exported_names_are_the_tree_in_the_docstring() -> None:
    assert errors.__doc__ is not None
    for name in errors.__all__:
        assert name in errors.__doc__
        assert issubclass(getattr(errors, name), errors.FlakestormError)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({}, "wrong"),
        ({"file": "a.yaml"}, "a.yaml: wrong"),
        ({"file": "a.yaml", "line": 3}, "a.yaml:3: wrong"),
        ({"file": "a.yaml", "line": 3, "key": "agent.timeout"}, "a.yaml:3: agent.timeout: wrong"),
    ],
)
def test_a_config_error_says_where(where, text) -> None:
    assert str(ConfigError("wrong", **where)) == text


def test_a_missing_extra_says_how_to_get_it() -> None:
    assert "pip install 'flakestorm[demo]'" in str(MissingExtra("the demo", "demo"))
