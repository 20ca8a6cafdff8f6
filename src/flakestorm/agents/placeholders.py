"""Keys that a request template takes from its inputs, and inputs that lack one.

`agent.request_template` may hold `{city}`, which an input's line `City: Oslo` fills. Where no input has such a line,
the text is meant as it stands. Where some have it and one has not, that one would be sent with `{city}` in it, and the
agent would be judged by a request that nobody means. So it is refused before anything is sent. (A placeholder that
stands for a whole JSON value is another thing: it says null where there is no line.)

Mutations are not looked at: what they have made of an input's lines is what they are for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from flakestorm.agents.request import named_in_text, normal, parse_structured_input
from flakestorm.config.access import invariants_in
from flakestorm.config.model import Agent, Config
from flakestorm.config.problems import Path, Problem
from flakestorm.core.conversation import Conversation, turns_of
from flakestorm.errors import ConfigError

__all__ = ["demand_keys", "demand_keys_of"]

_SENT_BY_TEMPLATE = ("http", "langchain")


def demand_keys(config: Config) -> None:
    """Refuse a golden prompt or a probe that lacks a key which other inputs of this config give to the template.

    Raises:
        ConfigError: one does; the message names it and the key.
    """
    names = _names(config.agent)
    if names:
        given = dict(_written(config))
        _demand(names, given, given)


def demand_keys_of(config: Config, inputs: Mapping[str, str]) -> None:
    """The same for inputs from elsewhere: of sessions, or of a command line.

    Args:
        config: the configuration, whose own inputs are known to have all keys.
        inputs: what they are called, and what is said.

    Raises:
        ConfigError: one lacks a key that another has; the message names it and the key.
    """
    names = _names(config.agent)
    if not names:
        return
    asked = {
        f"{what}, turn {at}" if isinstance(text, Conversation) else what: turn
        for what, text in inputs.items()
        for at, turn in enumerate(turns_of(text), 1)
    }
    try:
        _demand(names, asked, {**dict(_written(config)), **asked})
    except ConfigError as error:
        raise ConfigError(f"{error.key}: {error.message}", key="agent.request_template") from None


def _demand(names: Iterable[str], asked: Mapping[str, str], known: Mapping[str, str]) -> None:
    fields = {where: parse_structured_input(text) for where, text in known.items()}
    for name in names:
        has = next((where for where, found in fields.items() if normal(name) in found), None)
        lacks = next((where for where in asked if normal(name) not in fields[where]), None)
        if has is None or lacks is None:
            continue
        own = ", ".join(fields[lacks])
        there = f"its lines give {own}" if own else "it has no 'Key: value' lines"
        raise ConfigError(
            f"request_template takes {{{name}}}, which {has} gives and this input does not ({there}), so the text "
            f"{{{name}}} itself would be sent; add a line '{name}: ...', or set agent.parse_structured_input: false if "
            "placeholders are no keys of inputs",
            key=lacks,
        )


def _names(agent: Agent) -> list[str]:
    """The placeholders, but for {prompt}, that would stay as they are written where an input does not fill them."""
    if agent.type not in _SENT_BY_TEMPLATE or not agent.parse_structured_input or agent.request_template is None:
        return []
    return [name for name in named_in_text(agent.request_template) if name != "prompt"]


def _written(config: Config) -> Iterator[tuple[str, str]]:
    """Every input that the config holds, turn by turn, by its key."""
    for index, prompt in enumerate(config.golden_prompts):
        yield from _turns(("golden_prompts", index), prompt)
    for place, invariant in invariants_in(config):
        for index, probe in enumerate(invariant.probes):
            yield from _turns((*place, "probes", index), probe)


def _turns(place: Path, text: str) -> Iterator[tuple[str, str]]:
    several = isinstance(text, Conversation)
    for at, turn in enumerate(turns_of(text)):
        yield Problem((*place, at) if several else place, 0, "").key, turn
