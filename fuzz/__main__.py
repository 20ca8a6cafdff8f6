"""Fuzz one target: `python -m fuzz TARGET [--runs N] [--seconds S] [--corpus DIR]`.

Needs atheris (the dependency group `fuzz`). A crash or a hang leaves its input beside the corpus, and its name is
printed; `--input FILE` runs one such file.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from fuzz.targets import TARGETS, check_of, late

HERE = Path(__file__).parent
HANG_S = 10
"""An input that takes longer is a hang."""
MOST_BYTES = 1024
"""Of an input. Twice as many took longer and reached no further branch of any target."""
FEWER_BYTES = {"scanner": 400, **dict.fromkeys(("config", "langfuse", "matcher", "mcp", "wires"), 512)}
"""Where so many reach every branch that more reach; a recipe of the scanner uses up no more."""


def main() -> None:
    said = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    said.add_argument("target", choices=TARGETS, nargs="?", help="without it, the targets are listed")
    said.add_argument("--runs", type=int, default=1_000_000)
    said.add_argument("--seconds", type=int, default=0, help="end sooner, after so many seconds")
    said.add_argument("--corpus", type=Path, default=None)
    said.add_argument("--input", type=Path, default=None, help="run this file alone, without atheris")
    given = said.parse_args()
    if given.target is None:
        print(*TARGETS, sep="\n")
        return
    if given.input is not None:
        check_of(given.target)(given.input.read_bytes())
        return
    try:
        import atheris
    except ImportError:
        sys.exit("fuzzing needs atheris: pip install --group fuzz")
    with atheris.instrument_imports(include=["flakestorm"]):
        check = check_of(given.target)
        for name in late(given.target):
            importlib.import_module(name)
    corpus = given.corpus or Path(tempfile.gettempdir(), "flakestorm-fuzz", given.target)
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = HERE.parent / "tests" / "regressions" / given.target
    folders = [str(corpus), *([str(seeds)] if seeds.is_dir() else [])]
    limits = [
        f"-runs={given.runs}",
        f"-timeout={HANG_S}",
        "-rss_limit_mb=2048",
        f"-max_len={FEWER_BYTES.get(given.target, MOST_BYTES)}",
        "-print_final_stats=1",
    ]
    if given.seconds:
        limits.append(f"-max_total_time={given.seconds}")
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={corpus.parent / given.target}-", *folders], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
