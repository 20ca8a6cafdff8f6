"""Run the benchmarks: `python -m bench`, or some by name: `python -m bench matrix startup`.

`--quick` runs each for a few seconds, without peers and without judging; it shows that the scripts work.
`--write FILE` puts the results into a document. The exit code is 1 if a claim did not hold.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from bench.outcome import Outcome, machine, show, write

ALL = (
    "startup",
    "matrix",
    "boundary",
    "tape",
    "gateway",
    "explore",
    "explore_corpus",
    "blame",
    "scan",
    "cells",
    "page",
    "viewer",
    "soak",
    "cluster",
)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Speed, measured beside its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(ALL)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a few seconds each, without peers, judging nothing")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the results into this document")
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.names if name not in ALL]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(ALL)}")
    if asked.write and asked.quick:
        parser.error("--write needs benchmarks that are run in full")
    print(machine())
    outcomes: list[Outcome] = []
    for name in asked.names or ALL:
        print(f"== {name}", flush=True)
        found = import_module(f"bench.{name}").measure(quick=asked.quick)
        for outcome in found:
            print(f"   {outcome.title}")
            show(outcome)
        outcomes += found
    if asked.write:
        write(asked.write, outcomes)
    failed = [claim.text for outcome in outcomes for claim in outcome.claims if not claim.holds]
    for text in failed:
        print(f"does not hold: {text}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
