"""Student's t distribution for whole degrees of freedom, as far as intervals over a few tasks need it.

For whole degrees of freedom the distribution is a finite series in the angle atan(t / sqrt(df)) (Abramowitz and
Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4), so no special function and no library is needed.
"""

from __future__ import annotations

from functools import lru_cache
from math import atan2, cos, inf, pi, sin, sqrt

__all__ = ["t_central", "t_quantile"]


def t_central(t: float, df: int) -> float:
    """P(-t < T < t) for T with `df` degrees of freedom (at least 1) and t >= 0."""
    angle = atan2(t, sqrt(df))
    square = cos(angle) ** 2
    odd = df % 2
    term, series = (cos(angle), 0.0) if odd else (1.0, 0.0)
    for i in range((df - odd) // 2):
        series += term
        term *= square * ((2 * i + 2) / (2 * i + 3) if odd else (2 * i + 1) / (2 * i + 2))
        if term < 1e-18:
            break
    return 2 / pi * (angle + sin(angle) * series) if odd else sin(angle) * series


@lru_cache(maxsize=256)
def t_quantile(confidence: float, df: int) -> float:
    """The t with P(-t < T < t) = confidence, e.g. 2.776 for 0.95 and 4 degrees of freedom.

    Raises:
        ValueError: confidence is not strictly between 0 and 1, or df is below 1.
    """
    if not 0 < confidence < 1 or df < 1:
        raise ValueError(f"no t quantile for confidence {confidence} and {df} degrees of freedom")
    low, high = 0.0, 1.0
    while t_central(high, df) < confidence and high < inf:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_central(middle, df) < confidence else (low, middle)
    return (low + high) / 2
