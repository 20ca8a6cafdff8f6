"""Inputs from elsewhere than the config: of sessions, of a command line, of a tape."""

from __future__ import annotations

from collections.abc import Iterable

from flakestorm.api.placed import FromFile, telling
from flakestorm.config.access import all_invariants

__all__ = ["demand_keys"]


def demand_keys(work: FromFile, inputs: Iterable[tuple[str | None, str]]) -> None:
    """Make sure that inputs from elsewhere than the config lack no key that others give to its request template.

    Args:
        work: the project.
        inputs: a session's name, or None, and the input.

    Raises:
        ConfigError: one does; see `flakestorm.agents.placeholders`.
    """
    if work.config.agent.request_template is None:
        return
    from flakestorm.agents.placeholders import demand_keys_of  # few agents have a template
    from flakestorm.agents.reading import excerpt

    written = {*work.config.golden_prompts, *(probe for rule in all_invariants(work.config) for probe in rule.probes)}
    called = {
        f"the input {excerpt(text, 60)}" if session is None else f"the input of session {session!r}": text
        for session, text in inputs
        if session is not None or text not in written
    }
    with telling(work):
        demand_keys_of(work.config, called)
