"""What the checks of matched texts share: the register of them, and the checksums that many numbers have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["VALIDATORS", "digits_of", "luhn", "validator", "weighted", "whole"]

VALIDATORS: dict[str, Callable[[str], int]] = {}
"""Each takes the matched text and returns how many of its characters are the real thing: all, fewer, or none."""


def validator(check: Callable[[str], int]) -> Callable[[str], int]:
    """Register a check by its name."""
    VALIDATORS[check.__name__] = check
    return check


def digits_of(text: str) -> list[int]:
    """The digits in a text."""
    return [int(c) for c in text if c in "0123456789"]


def whole(text: str, valid: bool) -> int:
    """All of the text if it is valid, else nothing."""
    return len(text) if valid else 0


def luhn(digits: list[int]) -> bool:
    """ISO/IEC 7812-1 annex B: every second digit from the right doubled, its digits summed, total a multiple of 10."""
    doubled = [d * 2 - 9 * (d > 4) for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    """The sum of digits, each times its weight."""
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))
