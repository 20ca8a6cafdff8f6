import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from flakestorm.api.recording import record
from flakestorm.errors import Misuse, TapeError
from flakestorm.tape.reader import Tape
from upstream import Upstream


def test_calls_of_a_context_its_threads_and_tasks_are_recorded(tmp_path: Path) -> None:
    with Upstream() as up:

        def ask(word: str) -> None:
            httpx.get(f"{up.url}/{word}")

        async def task() -> None:
            async with httpx.AsyncClient() as client:
                await asyncio.gather(client.get(f"{up.url}/a"), client.get(f"{up.url}/b"))

        with record(tmp_path / "deep" / "a.tape", input="to Oslo", tools={"c": "*/c"}) as recording:
            thread = threading.Thread(target=ask, args=("c",))
            thread.start()
            thread.join()
            asyncio.run(task())
            recording.output = "done"
        httpx.get(f"{up.url}/later")
    tape = Tape.open(tmp_path / "deep" / "a.tape")
    tape.verify()
    assert (tape.input, tape.footer.output) == ("to Oslo", "done")  # type: ignore[union-attr]
    assert sorted(str(each.site) for each in tape) == ["http/127.0.0.1#1", "http/127.0.0.1#2", "tool/c#1"]
    assert {"started_at", "utc_offset_s"} <= tape.header.keys()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"input": 3}, "input=3 is not the text"),
        ({"redact": "sk-.*"}, "redact='sk-.*' is no list of patterns"),
        ({"tools": ["search"]}, "map names to URL globs"),
        ({"tools": {"search": 3}}, "map names to URL globs"),
    ],
)
def test_what_is_of_another_kind_is_refused_before_a_tape_is_written(tmp_path: Path, wrong: Any, told: str) -> None:
    with pytest.raises(Misuse, match=re.escape(told)), record(tmp_path / "a.tape", **wrong):
        pass
    assert not (tmp_path / "a.tape").exists()


def test_what_the_code_raises_is_on_the_tape(tmp_path: Path) -> None:
    with pytest.raises(KeyError), record(tmp_path / "a.tape"):
        raise KeyError("lost")
    footer = Tape.open(tmp_path / "a.tape").footer
    assert footer is not None
    assert footer.error == "KeyError: 'lost'"


def test_a_tape_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TapeError, match="choose another"), record(tmp_path / "file" / "a.tape"):
        raise AssertionError
    with pytest.raises(TapeError, match="folder"), record(tmp_path):
        raise AssertionError
