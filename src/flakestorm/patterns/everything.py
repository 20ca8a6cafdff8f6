"""All that a scan of a text can find: injected instructions and personal data."""

from __future__ import annotations

from flakestorm.patterns.finding import Finding, order
from flakestorm.patterns.injection import injections
from flakestorm.patterns.scanner import readings

__all__ = ["findings"]

_ORDER = order("start", "end", "kind", "id")


def findings(text: str) -> list[Finding]:
    """Injected instructions and everything that may be personal data, in order.

    Args:
        text: any text.
    """
    return sorted([*injections(text), *readings(text)], key=_ORDER)
