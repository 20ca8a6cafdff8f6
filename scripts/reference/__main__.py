"""Writes the pages, or says which are not what the code says."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from . import behaviour, commands, configuration, forms, library, measured, surroundings

MARKS = ("<!-- made by `python -m scripts.reference` -->", "<!-- end of what is made -->")
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands.page,
    "config.md": configuration.page,
    "environment.md": surroundings.page,
    "exit-codes.md": commands.exit_codes,
    "faults.md": behaviour.faults,
    "formats.md": forms.page,
    "pytest.md": library.plugin,
    "python.md": library.page,
}
PARTS: dict[str, Callable[[], str]] = {
    "invariants.md": behaviour.invariant_types,
    "mutations.md": behaviour.operators,
    "README.md": measured.figures,
}
"""Pages written by hand, whose text between the marks is made."""


def texts() -> dict[str, str]:
    """Page -> what it has to say."""
    made = {name: f"{MARKS[0]}\n\n{page()}" for name, page in PAGES.items()}
    for name, part in PARTS.items():
        before, first, rest = _file(name).read_text("utf-8").partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        assert first, f"{name} has no marks"
        made[name] = f"{before}{MARKS[0]}\n\n{part()}\n{MARKS[1]}{after}"
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    check = parser.parse_args().check
    if missing := surroundings.unknown():
        print(f"environment.md does not name {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    stale = {name: text for name, text in texts().items() if not _is(name, text)}
    if check and stale:
        print(f"not what the code says: {', '.join(stale)}; run `python -m scripts.reference`", file=sys.stderr)
        return 1
    if not check:
        for name, text in stale.items():
            _file(name).write_text(text, encoding="utf-8")
            print(f"wrote {name if name == 'README.md' else f'docs/reference/{name}'}")
    return 0


def _file(name: str) -> Path:
    return measured.ROOT / name if name == "README.md" else forms.FOLDER / name


def _is(name: str, text: str) -> bool:
    file = _file(name)
    return file.is_file() and file.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
