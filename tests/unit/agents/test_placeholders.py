"""Inputs that lack what the request template takes from others."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from flakestorm.agents.placeholders import demand_keys, demand_keys_of
from flakestorm.config.model import Config, Invariant
from flakestorm.core.conversation import Conversation
from flakestorm.errors import ConfigError

OSLO = "Book\nCity: Oslo"


def config(*prompts: Any, template: str | None = '{"m": "{prompt}", "to": "{city}"}', **agent: Any) -> Config:
    made = {"endpoint": "http://127.0.0.1:9", "request_template": template, **agent}
    return Config.of({"version": "2.0", "agent": made, "golden_prompts": list(prompts)}).at(str(Path.cwd()))


def test_an_input_that_lacks_what_another_has_is_named_with_the_key() -> None:
    with pytest.raises(ConfigError) as caught:
        demand_keys(config(OSLO, "Date: Monday\nname = Ann"))
    assert str(caught.value) == (
        "golden_prompts[1]: request_template takes {city}, which golden_prompts[0] gives and this input does not (its "
        "lines give date, name), so the text {city} itself would be sent; add a line 'city: ...', or set "
        "agent.parse_structured_input: false if placeholders are no keys of inputs"
    )


@pytest.mark.parametrize(
    "right",
    [
        config(OSLO, "City = Paris"),
        config("hello", "again"),  # nobody has it: the text is meant as it stands
        config(OSLO, "hello", template=None),
        config(OSLO, "hello", template='{"m": "{prompt}"}'),
        config(OSLO, "hello", template='{"m": "{prompt}", "to": {city}}'),  # says null
        config(OSLO, "hello", parse_structured_input=False),
        config(OSLO, "hello", type="command", start="cat"),
    ],
)
def test_where_nothing_is_lacking_nothing_is_said(right: Config) -> None:
    demand_keys(right)
    demand_keys_of(right, {})


def test_text_and_langchain_templates_are_held_to_it_too() -> None:
    for more in ({"template": "{prompt} to {city}"}, {"type": "langchain", "endpoint": "a:b"}):
        with pytest.raises(ConfigError, match=r"^golden_prompts\[1\]: .*it has no 'Key: value' lines"):
            demand_keys(config(OSLO, "hello", **more))


def test_turns_and_probes_are_inputs() -> None:
    with pytest.raises(ConfigError, match=r"^golden_prompts\[0\]\[1\]: .*golden_prompts\[0\]\[0\] gives"):
        demand_keys(config([OSLO, "and back"]))
    rules = [Invariant(type="completes", probes=["City: Rome", "hello"])]
    probed = replace(config(OSLO), invariants=rules)
    with pytest.raises(ConfigError, match=r"^invariants\[0\]\.probes\[1\]: "):
        demand_keys(probed)


def test_inputs_from_elsewhere_are_held_to_what_those_of_the_config_have() -> None:
    demand_keys_of(config(OSLO), {"x": "City: Rome"})
    with pytest.raises(ConfigError, match=r"^agent\.request_template: x: .*which golden_prompts\[0\] gives"):
        demand_keys_of(config(OSLO), {"x": "hello"})
    with pytest.raises(ConfigError, match=r"^agent\.request_template: x, turn 2: "):
        demand_keys_of(config(OSLO), {"x": Conversation([OSLO, "hello"])})
    with pytest.raises(ConfigError, match=r"^agent\.request_template: y: .*which x gives"):
        demand_keys_of(config("hello"), {"x": OSLO, "y": "hello"})
