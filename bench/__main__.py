"""Run every benchmark: `python -m bench`, or some by name: `python -m bench matrix startup`."""

from __future__ import annotations

import sys
from importlib import import_module

ALL = ("startup", "matrix", "boundary", "gateway")


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or ALL:
        print(f"== {name}", flush=True)
        if not import_module(f"bench.{name}").main():
            failed.append(name)
    if failed:
        print(f"claims not met: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
