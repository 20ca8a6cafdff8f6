"""The mirror rule: every module has its test file.

`src/flakestorm/<room>/<module>.py` is tested by `tests/unit/<room>/test_<module>.py`. Packages' `__init__` and
`__main__` files are exempt. A stand-alone program of several files that run in somebody else's process (PROGRAMS) has
one test file, which runs it as a whole.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = ROOT / "src" / "flakestorm", ROOT / "tests" / "unit"

PROGRAMS = {Path("boundary/shim"): Path("boundary/test_shim.py")}


def main() -> int:
    modules = {p.relative_to(SOURCE) for p in SOURCE.rglob("*.py") if p.name not in ("__init__.py", "__main__.py")}
    missing = [(folder, TESTS / test) for folder, test in PROGRAMS.items() if not (TESTS / test).is_file()]
    modules = {module for module in modules if not PROGRAMS.keys() & set(module.parents)}
    for module in sorted(modules):
        test = TESTS / module.parent / f"test_{module.name.removeprefix('_')}"
        if not test.is_file() or "def test_" not in test.read_text(encoding="utf-8"):
            missing.append((module, test.relative_to(ROOT)))
    for module, expected in missing:
        print(f"src/flakestorm/{module} has no test file; expected {expected} with at least one test")
    stray = [
        t.relative_to(ROOT)
        for t in sorted(TESTS.rglob("test_*.py"))
        if t.relative_to(TESTS) not in PROGRAMS.values()
        and not {
            t.relative_to(TESTS).with_name(name)
            for name in (t.name.removeprefix("test_"), "_" + t.name.removeprefix("test_"))
        }
        & modules
    ]
    for test_file in stray:
        print(f"{test_file} mirrors no module; move it to tests/e2e, tests/sdk, tests/wire or rename it")
    return 1 if missing or stray else 0


if __name__ == "__main__":
    sys.exit(main())
