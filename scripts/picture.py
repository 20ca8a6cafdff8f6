"""The picture of the README: what one run of `flakestorm demo` found, as an SVG of a few kilobytes.

    python scripts/picture.py                writes docs/pictures/demo.svg
    python scripts/picture.py --from FILE    of a JSON report that is there already
    python scripts/picture.py --check        exits 1 if the file is not what a run shows now

The demo has a fixed seed and the picture shows no times, so every run gives the same file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from html import escape
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "demo.svg"
WIDTH, LEFT, TOP, ROW, GAP, COLUMN = 820, 190, 84, 40, 4, 150
COLOURS = {"pass": ("#1a7f4b", "✓"), "fail": ("#c0262d", "✕"), "n/a": ("#d5d9df", "–")}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--from", dest="report", type=Path, help="a JSON report of the demo; else the demo is run")
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    given = parser.parse_args()
    report = json.loads(given.report.read_text("utf-8")) if given.report else demo()
    made = drawn(report)
    if given.check:
        if PICTURE.is_file() and PICTURE.read_text("utf-8") == made:
            return 0
        print(f"{PICTURE} is not what the demo shows now; run `python scripts/picture.py`", file=sys.stderr)
        return 1
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(made, encoding="utf-8")
    return 0


def demo() -> dict[str, Any]:
    """The report of a run of the demo."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "flakestorm", "demo", "--quiet", "--format", "json", "-o", "report.json"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        report: dict[str, Any] = json.loads(Path(folder, "report.json").read_text("utf-8"))
        return report


def drawn(report: dict[str, Any]) -> str:
    """The heat map of a report, scenarios x invariants, and below it what the worst cell rests on."""
    scenarios = [each["name"] for each in report["scenarios"]]
    rules = [each["id"] for each in report["invariants"]]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for cell in report["cells"]:
        counts.setdefault((cell["scenario"], cell["invariant"]), Counter())[cell["verdict"]] += 1
    height = TOP + ROW * len(scenarios) + 84
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(_told(report))}" font-family="ui-sans-serif, system-ui, sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff" stroke="#d5d9df"/>',
        _text(20, 32, f"flakestorm demo: {len(report['runs'])} runs of a booking agent", size=17, weight=600),
        _text(20, 54, f"{len(scenarios)} scenarios x {len(rules)} promises, judged on its real calls", fill="#57606a"),
    ]
    parts += [
        _text(LEFT + n * COLUMN + COLUMN // 2 - GAP, TOP - 8, rule, size=13, anchor="middle")
        for n, rule in enumerate(rules)
    ]
    for row, scenario in enumerate(scenarios):
        y = TOP + row * ROW
        parts.append(_text(20, y + 24, scenario))
        for n, rule in enumerate(rules):
            parts.append(_cell(LEFT + n * COLUMN, y, counts.get((scenario, rule), Counter())))
    y = TOP + ROW * len(scenarios) + 30
    parts += [_text(20, y + 22 * n, line, fill=fill) for n, (line, fill) in enumerate(_evidence(report))]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cell(x: int, y: int, found: Counter[str]) -> str:
    verdict = "fail" if found["fail"] else "pass" if found["pass"] else "n/a"
    colour, mark = COLOURS[verdict]
    words = f"{mark} n/a"
    if verdict != "n/a":
        words = f"{mark} {found['pass']}/{found['pass'] + found['fail']}"
        words += f" +{found['inconclusive']}?" if found["inconclusive"] else ""
    box = f'<rect x="{x}" y="{y}" width="{COLUMN - GAP}" height="{ROW - GAP}" rx="6" fill="{colour}"/>'
    fill = "#24292f" if verdict == "n/a" else "#ffffff"
    return box + _text(x + COLUMN // 2 - GAP, y + 23, words, fill=fill, anchor="middle")


def _worst(report: dict[str, Any]) -> dict[str, Any] | None:
    failed = [cell for cell in report["cells"] if cell["verdict"] == "fail"]
    return next((cell for cell in failed if cell["severity"] == "critical"), failed[0] if failed else None)


def _evidence(report: dict[str, Any]) -> list[tuple[str, str]]:
    cell = _worst(report)
    if cell is None:
        return [(report["headline"], "#1a7f4b")]
    run = next(run for run in report["runs"] if run["id"] == cell["run"])
    hit = ", ".join(f"{fired['site']} {fired['mode']}" for fired in run["faults"]["fired"])
    said = run["output"].partition(". ")[0].rstrip(".")
    return [
        (f"{cell['scenario']}: {hit}, and the agent answered", "#24292f"),
        (f"“{said}.”", "#c0262d"),
    ]


def _told(report: dict[str, Any]) -> str:
    cell = _worst(report)
    return report["headline"] if cell is None else f"Heat map. {cell['invariant']} fails in {cell['scenario']}."


def _text(
    x: int, y: int, words: str, *, fill: str = "#24292f", size: int = 14, weight: int = 400, anchor: str = "start"
) -> str:
    style = f'fill="{fill}"'
    style += f' font-size="{size}"' if size != 14 else ""
    style += f' font-weight="{weight}"' if weight != 400 else ""
    style += f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x}" y="{y}" {style}>{escape(words)}</text>'


if __name__ == "__main__":
    sys.exit(main())
