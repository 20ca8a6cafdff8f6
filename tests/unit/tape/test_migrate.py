from __future__ import annotations

import json
from pathlib import Path

import pytest

from flakestorm.tape.lines import FILE
from flakestorm.tape.migrate import STEPS, migrated
from flakestorm.tape.reader import Tape, describe

SAMPLES = Path(__file__).parent / "samples"
OLD = SAMPLES / "form-1.tape"


def test_there_is_a_step_from_every_older_form() -> None:
    assert sorted(STEPS) == list(range(1, FILE))


def test_a_tape_of_the_first_form_reads_as_it_did() -> None:
    tape = Tape.open(OLD)
    tape.verify()
    first, second, stream = tape.exchanges()
    assert tape.footer is not None
    assert (tape.form, tape.key, tape.input, tape.footer.output) == (1, None, "to Oslo", "booked")
    assert (str(first.site), first.body, first.world) == ("tool/search#1", b'{"page": 1}', None)
    assert second.world is not None
    assert (second.reply.body, second.world.body) == (b'"gotcha"', first.reply.body)
    assert stream.reply.chunks == [b"data: 1\n\n", b"data: \xff\n\n"]
    assert describe(tape)["format"] == "flakestorm-tape/1"


def test_a_tape_of_the_second_form_reads_as_it_did() -> None:
    tape = Tape.open(SAMPLES / "form-2.tape")
    tape.verify()
    exchanges = tape.exchanges()
    chat, tools = exchanges[::2], exchanges[1::2]
    assert [len(exchange.body) for exchange in chat] == [137, 649, 939, 1451, 1741]
    for exchange in chat:
        assert exchange.headers[1] == ("content-length", str(len(exchange.body)))
        assert exchange.reply.headers[2] == ("content-length", str(len(exchange.reply.body)))
    last = json.loads(chat[-1].body)["messages"]
    said = [json.loads(exchange.reply.body)["choices"][0]["message"] for exchange in chat]
    assert last[1::2] == said[:-1]
    assert [len(tool.reply.body) for tool in tools] == [415] * 5  # between the numbered ones of then and of now
    assert [json.loads(tool.reply.body)["page"] for tool in tools] == [0, 1, 2, 3, 4]


def test_texts_of_the_second_form_keep_their_numbers() -> None:
    short, long = "s" * 400, "l" * 600
    line = {"body": short, "reply": {"body": long}, "world": {"body": short}, "world_body": {"base64": "AA" * 300}}
    once = {"once": short}
    assert migrated(line, 2) == {
        "body": once, "reply": {"body": long}, "world": {"body": once}, "world_body": {"once": {"base64": "AA" * 300}}
    }  # fmt: skip
    made = {"of": 0, "parts": [[0, 380], "more"]}
    assert migrated({"body": made}, 2) == {"body": {"once": made}}
    assert migrated({"body": "é" * 200}, 2) == {"body": {"once": "é" * 200}}
    with pytest.raises(ValueError, match="a part of a body"):
        migrated({"body": {"of": 0, "parts": [[0, 1, 0]]}}, 2)


def test_what_is_not_of_that_form_is_refused() -> None:
    with pytest.raises(ValueError, match="'chunks' must be a list"):
        migrated({"reply": {}}, 1)
    assert migrated({"reply": 3}, 1) == {"reply": 3}
    assert migrated({"reply": {}}, FILE) == {"reply": {}}
    assert migrated({"body": 7}, FILE) == {"body": 7}
