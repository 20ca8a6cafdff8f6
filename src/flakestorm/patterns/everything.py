"""All that a scan of a text can find: injected instructions and personal data."""

from __future__ import annotations

from flakestorm.patterns.finding import Finding
from flakestorm.patterns.injection import injections
from flakestorm.patterns.scanner import readings

__all__ = ["findings"]


def findings(text: str) -> list[Finding]:
    """Injected instructions and everything that may be personal data, in order.

    Args:
        text: any text.
    """
    return sorted([*injections(text), *readings(text)], key=lambda f: (f.start, f.end, f.kind, f.id))
