"""Write what the patterns of `injection.yaml` must have: `python -m scripts.anchors`.

A text is asked for that first, so it must not take long to know (`src/flakestorm/patterns/known.py`).
"""

from __future__ import annotations

from pathlib import Path

from flakestorm import patterns
from flakestorm.patterns.disguise import WHOLE
from flakestorm.patterns.injection import injection_rows
from flakestorm.patterns.known import FILE, written


def main() -> None:
    """Write the file beside the patterns."""
    sources = [*(row["pattern"] for row in injection_rows()), *WHOLE]
    file = Path(patterns.__file__ or "").with_name(FILE)
    file.write_text(written(sources), encoding="utf-8")


if __name__ == "__main__":
    main()
