"""Every recorded cassette can be imported, and its tape says what the cassette's bodies say.

What those bodies mean is held against the index, made by others, in `test_recorded`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from flakestorm.errors import Misuse
from flakestorm.importers.files import import_file
from flakestorm.tape.model import Exchange
from flakestorm.tape.reader import Tape, describe
from wire_support import DATA, Recorded, cassettes

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the recorded data is not at {DATA}")

Shown = list[tuple[Exchange, dict[str, Any]]]
FILES = sorted((DATA / "wire").rglob("*.yaml"))


@cache
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "wire" / "INDEX.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Shown]:
    """File -> its exchanges, as they are on the tape and as `tapes show --format json` tells them; files that are
    refused are left out.
    """
    folder, found = tmp_path_factory.mktemp("tapes"), {}
    for n, file in enumerate(FILES):
        try:
            tape = Tape.open(import_file(file, folder / f"{n}.tape").tape)
        except Misuse:
            continue
        tape.verify()
        found[file] = list(zip(tape.exchanges(), describe(tape)["exchanges"], strict=True))
    return found


def test_every_cassette_is_imported_whole_except_those_of_websockets(tapes: dict[Path, Shown], tmp_path: Path) -> None:
    assert len(FILES) == 267
    for file in FILES:
        recorded = yaml.load(file.read_bytes(), yaml.CSafeLoader)["interactions"]
        if any("direction" in item for item in recorded):
            with pytest.raises(Misuse, match="is a WebSocket message; only HTTP exchanges can be imported"):
                import_file(file, tmp_path / "x.tape")
        else:
            assert len(tapes[file]) == len(recorded)
    assert len(tapes) == 256


def test_every_indexed_exchange_is_on_its_tape(tapes: dict[Path, Shown]) -> None:
    assert len(rows()) == 363
    for row in rows():
        _, exchange = tapes[DATA / row["file"]][row["i"]]
        assert (exchange["reply"]["status"], exchange["reply"]["stream"]) == (row["status"], row["stream"])
        assert row["host"] in exchange["request"]["url"]


def test_an_imported_exchange_says_what_was_recorded(tapes: dict[Path, Shown]) -> None:
    by_id: dict[str, Recorded] = {exchange.id: exchange for exchange in cassettes()}
    told = 0
    for row in rows():
        path = DATA / row["file"]
        recorded = by_id.get(f"{path.parent.name}/{path.stem}#{row['i']}")
        if recorded is None:  # of a protocol that has no wire
            continue
        taped, exchange = tapes[path][row["i"]]
        said = recorded.wire.said(recorded.body, stream=recorded.stream)
        reply = exchange["reply"]
        assert (exchange["kind"], exchange["wire"]) == ("llm", recorded.wire.name)
        assert exchange["request"]["body"] == json.loads(recorded.call.body)
        assert reply["text"] == said.text
        assert reply["tool_calls"] == [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in said.tool_calls]
        assert reply["finish"] == said.finish
        assert reply["usage"] == {
            "input": said.usage.input if said.usage else None,
            "output": said.usage.output if said.usage else None,
        }
        if reply["stream"]:
            assert taped.reply.body == recorded.body
            assert len(reply["chunks"]) >= row.get("facts", {}).get("events", 1)
        else:
            assert json.loads("".join(reply["chunks"])) == json.loads(recorded.body)
        told += 1
    assert told == len(by_id) >= 171
