from __future__ import annotations

from pathlib import Path

import pytest

from flakestorm.tape.lines import FILE
from flakestorm.tape.migrate import STEPS, migrated
from flakestorm.tape.reader import Tape, describe

OLD = Path(__file__).parent / "samples" / "form-1.tape"


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


def test_what_is_not_of_that_form_is_refused() -> None:
    with pytest.raises(ValueError, match="'chunks' must be a list"):
        migrated({"reply": {}}, 1)
    assert migrated({"reply": 3}, 1) == {"reply": 3}
    assert migrated({"reply": {}}, FILE) == {"reply": {}}
