"""What patterns must have, worked out beforehand.

To work it out takes longer than all else that is done before the first text is read. So `injection.json` has it, which
`python -m scripts.anchors` writes. It says of which patterns it is; for any others it is worked out anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from flakestorm.patterns.engine import text_of
from flakestorm.patterns.prefilter import Anchor, anchors

__all__ = ["FILE", "known", "written"]

FILE = "injection.json"


def known(patterns: Sequence[str]) -> list[Anchor]:
    """What each alternative of each pattern must have, as `prefilter.anchors` says it.

    Args:
        patterns: in the syntax that RE2 and Python's `re` share, matched without regard to case.
    """
    data: dict[str, Any] = json.loads(text_of(FILE))
    if data["of"] != _digest(patterns):
        return list(anchors(patterns))
    clauses = [frozenset(clause) for clause in data["clauses"]]
    return [
        (index, kind, [clauses[number] for number in numbers], before, behind)
        for index, kind, before, behind, *numbers in data["anchors"]
    ]


def written(patterns: Sequence[str]) -> str:
    """The file for these patterns."""
    found = [
        (index, kind, before, behind, [tuple(sorted(clause)) for clause in clauses])
        for index, kind, clauses, before, behind in anchors(patterns)
    ]
    numbers = {clause: number for number, clause in enumerate(dict.fromkeys(c for *_, some in found for c in some))}
    parts = {
        "of": json.dumps(_digest(patterns)),
        "clauses": _lines(numbers),
        "anchors": _lines(
            [index, kind, before, behind, *(numbers[clause] for clause in clauses)]
            for index, kind, before, behind, clauses in found
        ),
    }
    return "{" + ",\n".join(f'"{name}": {part}' for name, part in parts.items()) + "}\n"


def _lines(values: Any) -> str:
    return "[" + ",\n".join(json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in values) + "]"


def _digest(patterns: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(patterns).encode()).hexdigest()
