from __future__ import annotations

from pathlib import Path

import pytest

from flakestorm.core.call import Call, Reply
from flakestorm.errors import TapeError
from flakestorm.importers.taping import write_tape
from flakestorm.tape.reader import Tape
from flakestorm.wire.shape import dump
from importers_support import ASKED, SAID, URL

JSON = (("content-type", "application/json"),)
MODEL = (Call("POST", URL, JSON, dump(ASKED)), Reply(200, JSON, dump(SAID)))
SEARCH = (Call("GET", "https://flights.test/search?api_key=0123456789"), Reply(200, JSON, [b'{"a":', b"1}"]))


def test_exchanges_are_named_counted_and_sealed(tmp_path: Path) -> None:
    path = tmp_path / "x.tape"
    calls = write_tape(
        path, [MODEL, SEARCH, MODEL], header={"run": "x", "input": None}, tools=[("search", "*/search*")]
    )
    assert calls == {"llm": 2, "tool": 1}
    tape = Tape.open(path)
    tape.verify()
    assert [str(e.site) for e in tape.exchanges()] == ["llm/gpt-4o#1", "tool/search#1", "llm/gpt-4o#2"]
    assert (tape.header["run"], tape.input, tape.complete) == ("x", None, True)
    search = tape.exchanges()[1]
    assert (search.reply.chunks, search.reply.end, search.sent, search.world) == ([b'{"a":', b"1}"], "eof", 1, None)
    assert (search.t_ms, search.duration_ms, search.reply.at_ms) == (0.0, 0.0, [0.0, 0.0])


def test_secrets_are_left_out(tmp_path: Path) -> None:
    secret = "sk-0123456789abcdef"
    call = Call("GET", f"https://u:{secret}@api.test/?token={secret}", (("Authorization", f"Bearer {secret}"),))
    write_tape(tmp_path / "x.tape", [(call, Reply(200, (("set-cookie", secret),)))], header={"run": "x"})
    assert secret not in (tmp_path / "x.tape").read_text()


def test_the_same_exchanges_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_tape(tmp_path / name, [MODEL, SEARCH], header={"run": "x"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_tape_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def broken():
        yield MODEL
        raise Stop

    path = tmp_path / "x.tape"
    write_tape(path, [SEARCH], header={"run": "before"})
    with pytest.raises(Stop):
        write_tape(path, broken(), header={"run": "after"})
    assert Tape.open(path).header["run"] == "before"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(TapeError, match="cannot be written"):
        write_tape(tmp_path / "none" / "x.tape", [MODEL], header={"run": "x"})
