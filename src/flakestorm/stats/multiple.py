"""Many questions asked of the same runs: how sure one can be of each answer."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["holm"]


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: rejecting those at most alpha makes any false rejection at most
    alpha likely, whatever the dependence (S. Holm, "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 1979). The p-value of an e-value E is min(1, 1/E).

    Args:
        p_values: each in 0..1.
        weights: each question's part in alpha, above 0, on any scale; equal parts when None (the same paper's section
            on weights).

    Raises:
        ValueError: a p-value is not in 0..1, or there is not one weight above 0 for each.
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values are in 0..1, not {list(p_values)}")
    parts = [1.0] * len(p_values) if weights is None else list(weights)
    if len(parts) != len(p_values) or any(not part > 0 for part in parts):
        raise ValueError(f"one weight above 0 is needed for each of {len(p_values)} p-values, not {parts}")
    adjusted = [0.0] * len(p_values)
    worst, left = 0.0, sum(parts)
    for at in sorted(range(len(p_values)), key=lambda at: p_values[at] / parts[at]):
        worst = max(worst, min(1.0, left * p_values[at] / parts[at]))
        adjusted[at] = worst
        left -= parts[at]
    return tuple(adjusted)
