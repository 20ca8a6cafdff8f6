import pytest

from flakestorm.errors import ConfigError
from flakestorm.mutations.custom import TEMPLATE_LIMIT
from flakestorm.mutations.generate import Recipe, made


def texts(templates: dict[str, str], prompt: str = "hello", count: int = 5) -> tuple[dict[str, str], list[str]]:
    found, notes = made(Recipe(["custom"], count, 1, {}, templates), prompt)
    return {m.operator: m.text for m in found}, notes


def test_only_the_prompt_is_put_in() -> None:
    found, _ = texts({"a": "{prompt} {0} {prompt.__class__} %s {{x}} {other}"})
    assert found == {"a": "hello {0} {prompt.__class__} %s {{x}} {other}"}


def test_what_a_prompt_holds_is_never_a_template() -> None:
    found, _ = texts({"a": "<{prompt}|{prompt}>"}, "{prompt}!")
    assert found == {"a": "<{prompt}!|{prompt}!>"}


def test_each_template_gives_one_and_the_shortfall_is_said() -> None:
    found, notes = texts({"a": "a {prompt}", "b": "b {prompt}"})
    assert found == {"a": "a hello", "b": "b hello"}
    assert notes == ["custom: 2 of 5 mutations of 'hello'; there are no more distinct ones"]


def test_an_attack_is_named_so() -> None:
    found, _ = made(Recipe(["custom"], 2, 1, {}, {"attack-1": "x {prompt}", "jargon": "y {prompt}"}), "hello")
    assert {m.operator: m.kind for m in found} == {"attack-1": "attack", "jargon": "benign"}


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("no place", "has no {prompt}"),
        ("{prompt}" + "x" * TEMPLATE_LIMIT, "is too large"),
        ("{prompt}" * 101, "is too large"),
    ],
)
def test_templates_that_are_refused(template, words) -> None:
    with pytest.raises(ConfigError, match=r"mutations\.custom_templates\.bad") as caught:
        texts({"bad": template})
    assert words in str(caught.value)
