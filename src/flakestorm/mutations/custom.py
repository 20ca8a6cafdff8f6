"""The user's own templates: `custom`. Nothing in them means anything but `{prompt}`."""

from __future__ import annotations

from collections.abc import Mapping

from flakestorm.core.choices import Draw
from flakestorm.errors import ConfigError
from flakestorm.mutations.base import TEXT_LIMIT, Kind, Operator

__all__ = ["TEMPLATE_LIMIT", "operators"]

TEMPLATE_LIMIT = 100_000
"""Characters of one template."""

_PLACE = "{prompt}"
_MOST_PLACES = 100


def operators(templates: Mapping[str, str]) -> tuple[Operator, ...]:
    """One operator for each template, by its name; a name that begins with `attack` makes it an attack.

    Raises:
        ConfigError: a template has no place for the prompt, or is too large.
    """
    return tuple(_operator(name, text) for name, text in templates.items())


def _operator(name: str, template: str) -> Operator:
    key = f"mutations.custom_templates.{name}"
    places = template.count(_PLACE)
    if not places:
        raise ConfigError(f"template {name!r} has no {_PLACE}, so the prompt would be lost; put it in", key=key)
    if len(template) > TEMPLATE_LIMIT or places > _MOST_PLACES:
        raise ConfigError(
            f"template {name!r} is too large: at most {TEMPLATE_LIMIT:,} characters and {_MOST_PLACES} times {_PLACE}",
            key=key,
        )

    def write(prompt: str, _: Draw) -> str:
        if len(template) + places * len(prompt) > TEXT_LIMIT:
            raise ConfigError(f"template {name!r} makes a text of more than {TEXT_LIMIT:,} characters", key=key)
        return prompt.join(template.split(_PLACE))

    kind: Kind = "attack" if name.lower().startswith("attack") else "benign"
    return Operator(name, kind, write)
