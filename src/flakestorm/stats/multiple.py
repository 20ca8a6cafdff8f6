"""Many questions asked of the same runs: how sure one can be of each answer."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given: rejecting those at most alpha makes any false rejection at most
    alpha likely, whatever the dependence (S. Holm, "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 1979). The p-value of an e-value E is min(1, 1/E).

    Raises:
        ValueError: a p-value is not in 0..1.
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values are in 0..1, not {list(p_values)}")
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = worst
    return tuple(adjusted)
