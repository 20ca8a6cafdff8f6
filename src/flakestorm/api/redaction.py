"""Which secrets a project knows beforehand, and what takes them out of its tapes and reports."""

from __future__ import annotations

import os
from collections.abc import Callable

from flakestorm.config.model import Config
from flakestorm.tape.naming import is_secret_header
from flakestorm.tape.patterns import Patterns
from flakestorm.tape.redact import Redactor, key_of, secrets_of

__all__ = ["known_to", "redaction_of"]


def known_to(config: Config) -> list[str]:
    """The secrets of the caller's environment, of `agent.env` and of `agent.headers`."""
    known = secrets_of(config.agent.env) + secrets_of(os.environ)
    for name, value in config.agent.headers.items():
        if is_secret_header(name):
            known += {value, value.rpartition(" ")[2]}
    return known


def redaction_of(config: Config, seed: int = 0) -> Callable[[], Redactor]:
    """Makes the redactor of one more run; all runs of a seed share a key.

    Known beforehand is what `known_to` gives, and what `boundary.redact` names.

    Raises:
        ConfigError: an entry of `boundary.redact` is neither a regular expression nor a JSON path.
    """
    known, entries = known_to(config), config.boundary.redact
    Patterns(entries)  # what is wrong with them is said before anything starts
    key = key_of(seed)

    def make() -> Redactor:
        return Redactor(key, known=known, patterns=entries)

    return make
