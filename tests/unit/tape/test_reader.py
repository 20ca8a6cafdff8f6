from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults_support import JSON, RESULTS, tool_call
from flakestorm.core.call import Reply
from flakestorm.core.conversation import Conversation
from flakestorm.errors import TapeDamaged
from flakestorm.tape import reader
from flakestorm.tape.lines import START, seal
from flakestorm.tape.reader import Footer, Tape, describe
from flakestorm.version import __version__
from tape_support import Run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A finished tape of three exchanges: a header, three lines, a footer."""
    return record(tmp_path / "r.tape")


def record(path: Path, *, finish: bool = True) -> Path:
    run = Run(path)
    for n in (1, 2, 3):
        run.ask(replace(tool_call(n=n), body=b'{"page": %d}' % n), lambda _: Reply(200, JSON, RESULTS))
    unfinished = path.read_bytes()
    run.recorder.close(output="booked")
    if not finish:
        path.write_bytes(unfinished)
    return path


def forge(path: Path, *contents: dict[str, object]) -> Path:
    """A tape whose seals are right, whatever it says."""
    chain, lines = START, []
    for content in contents:
        line, chain = seal(content, chain)
        lines.append(line)
    path.write_bytes(b"".join(lines))
    return path


def damage(path: Path, change: object) -> None:
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_tape_reads_back_as_it_was_recorded(path: Path) -> None:
    tape = Tape.open(str(path))
    assert (tape.header["run"], tape.header["version"], tape.input) == ("r-1", __version__, "to Oslo")
    assert [str(e.site) for e in tape] == ["tool/search#1", "tool/search#2", "tool/search#3"]
    assert [e.body for e in tape.exchanges()] == [b'{"page": 1}', b'{"page": 2}', b'{"page": 3}']
    assert tape.footer == Footer("booked", None, tape.footer.digest)  # type: ignore[union-attr]
    assert tape.complete
    tape.verify()


def test_exchanges_are_read_one_at_a_time(path: Path) -> None:
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:2]) + b"rubbish\n")
    exchanges = iter(Tape.open(path))
    assert next(exchanges).site.occurrence == 1
    with pytest.raises(TapeDamaged):
        next(exchanges)


def test_the_footer_is_read_once(path: Path) -> None:
    tape = Tape.open(path)
    footer = tape.footer
    path.unlink()
    assert tape.footer is footer


def test_a_recording_that_was_interrupted_reads_fine_and_says_so(tmp_path: Path) -> None:
    tape = Tape.open(record(tmp_path / "r.tape", finish=False))
    assert (tape.complete, tape.footer, len(tape.exchanges())) == (False, None, 3)
    with pytest.raises(TapeDamaged, match=r"cut short: it has no footer.*3 exchanges before that are intact"):
        tape.verify()


def test_a_tape_cut_at_a_line_is_no_whole_recording(path: Path) -> None:
    path.write_bytes(b"".join(lines_of(path)[:2]))
    tape = Tape.open(path)
    assert len(tape.exchanges()) == 1
    with pytest.raises(TapeDamaged, match="1 exchange before that are intact"):
        tape.verify()


def test_a_tape_cut_in_a_line_says_what_is_intact(path: Path) -> None:
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:50])
    tape = Tape.open(path)
    with pytest.raises(TapeDamaged, match=r"r\.tape:4: the tape is cut short in the middle of a line; 2 exchanges"):
        tape.exchanges()


@pytest.mark.parametrize(
    ("order", "line"),
    [((0, 2, 1, 3, 4), 2), ((0, 1, 3, 4), 3), ((0, 1, 1, 2, 3, 4), 3), ((0, 2, 3, 4), 2), ((0, 4), 2)],
    ids=["reordered", "one left out", "one twice", "first left out", "all left out"],
)
def test_lines_that_were_moved_show_at_the_first_that_disagrees(path: Path, order: tuple[int, ...], line: int) -> None:
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[i] for i in order))
    with pytest.raises(TapeDamaged, match=rf":{line}: the tape was edited or damaged at this line"):
        Tape.open(path).verify()


def test_an_edited_word_shows(path: Path) -> None:
    damage(path, lambda data: data.replace(b'{\\"page\\": 2}', b'{\\"page\\": 9}'))
    with pytest.raises(TapeDamaged, match=r":3: the tape was edited .*; 1 exchange before"):
        Tape.open(path).exchanges()


def test_a_line_after_the_footer_shows(path: Path) -> None:
    lines = lines_of(path)
    contents = [{k: v for k, v in json.loads(line).items() if k != "chain"} for line in lines]
    forge(path, *contents, contents[1])
    with pytest.raises(TapeDamaged, match=r":6: there is more after the footer"):
        Tape.open(path).verify()


def test_a_resealed_tape_must_still_hold_what_its_digest_says(path: Path) -> None:
    contents = [{k: v for k, v in json.loads(line).items() if k != "chain"} for line in lines_of(path)]
    contents[2]["body"] = "changed"
    tape = Tape.open(forge(path, *contents))
    assert tape.exchanges()[1].body == b"changed"
    with pytest.raises(TapeDamaged, match="not those its digest was made of"):
        tape.verify()


@settings(max_examples=60)
@given(data=st.data())
def test_no_changed_byte_goes_unnoticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = record(tmp_path_factory.mktemp("tape") / "r.tape")
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 2))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != whole[at]))
    path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
    with pytest.raises(TapeDamaged):
        Tape.open(path).verify()


@settings(max_examples=60)
@given(data=st.data())
def test_no_cut_goes_unnoticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = record(tmp_path_factory.mktemp("tape") / "r.tape")
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])
    with pytest.raises(TapeDamaged):
        Tape.open(path).verify()


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_tape_or_damaged(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("tape") / "x"
    path.write_bytes(data)
    with pytest.raises(TapeDamaged, match="is not a tape"):
        Tape.open(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a tape: it is empty"),
        (b"\n", "its first line is not a tape's header"),
        (b'{"interactions": []}\n', "its first line is not a tape's header"),
        (b'{"format":"flakestorm-tape/1","chain":"00"}\n', "edited or damaged at this line"),
        (
            b'{"format":"flakestorm-tape/4","sealed":"otherwise"}\n',
            "flakestorm-tape/4, .* reads flakestorm-tape/1 to 3; upgrade",
        ),
    ],
)
def test_what_is_not_a_tape_of_this_format(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(TapeDamaged, match=message):
        Tape.open(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"format": "flakestorm-tape/12"}, "upgrade flakestorm"),
        ({"format": "vcr/1"}, "not a tape"),
        ({"format": 1}, "not a tape"),
        ({}, "not a tape"),
    ],
)
def test_a_sealed_header_of_something_else(tmp_path: Path, header: dict[str, object], message: str) -> None:
    with pytest.raises(TapeDamaged, match=message):
        Tape.open(forge(tmp_path / "x", header))


@pytest.mark.parametrize("content", [{"n": 0}, {"digest": 3}, {"digest": "00", "output": None, "error": None}])
def test_a_sealed_line_of_another_shape_names_its_line(tmp_path: Path, content: dict[str, object]) -> None:
    path = forge(tmp_path / "x", {"format": "flakestorm-tape/1"}, content)
    with pytest.raises(TapeDamaged, match=":2: this line cannot be read"):
        Tape.open(path).exchanges()


def test_a_line_too_long_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 200)
    with pytest.raises(TapeDamaged, match=":2: the line is longer than 200 bytes"):
        Tape.open(path).exchanges()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TapeDamaged, match="cannot be read: No such file"):
        Tape.open(tmp_path / "x")
    with pytest.raises(TapeDamaged, match="cannot be read: Is a directory"):
        Tape.open(tmp_path)


def test_a_tape_is_described_by_its_run_and_its_exchanges(path: Path) -> None:
    tape = Tape.open(path)
    described = describe(tape)
    assert tape.footer is not None
    assert {key: described[key] for key in ("format", "run", "input", "output", "error", "digest", "complete")} == {
        "format": "flakestorm-tape/1",
        "run": "r-1",
        "input": "to Oslo",
        "output": "booked",
        "error": None,
        "digest": tape.footer.digest,
        "complete": True,
    }
    assert [e["site"] for e in described["exchanges"]] == ["tool/search#1", "tool/search#2", "tool/search#3"]
    json.dumps({**described, "exchanges": list(described["exchanges"])})


def test_an_interrupted_tape_is_described_as_far_as_it_goes(tmp_path: Path) -> None:
    described = describe(Tape.open(record(tmp_path / "r.tape", finish=False)))
    assert (described["complete"], described["output"], len(described["exchanges"])) == (False, "", 3)
    assert len(described["digest"]) == 64


@pytest.mark.parametrize("entries", ["CUST", [1], ["x"] * 1001, ["("], ["$.a["]])
def test_patterns_of_a_stranger_that_make_no_sense_are_damage(tmp_path: Path, entries: object) -> None:
    tape = Tape.open(forge(tmp_path / "x", {"format": "flakestorm-tape/2", "key": "k", "redact": entries}))
    with pytest.raises(TapeDamaged, match=r"x:1: .*redact"):
        tape.redactor()


def test_the_patterns_of_the_recording_are_used_again(tmp_path: Path) -> None:
    header = {"format": "flakestorm-tape/2", "key": "k", "redact": ["CUST-[0-9]"]}
    redactor = Tape.open(forge(tmp_path / "x", header)).redactor(known=(), patterns=["ORD-[0-9]"])
    assert redactor.text("CUST-1 and ORD-2").count("[secret:") == 2


@pytest.mark.parametrize("turns", [[], "text", [1, 2], [["a"]], {"a": 1}])
def test_turns_that_are_none_are_no_conversation(turns: object, tmp_path: Path) -> None:
    tape = Tape(tmp_path / "a.tape", {"input": "hi", "turns": turns})
    assert type(tape.input) is str


def test_a_conversation_is_read_as_one(tmp_path: Path) -> None:
    given = Tape(tmp_path / "a.tape", {"input": "[1] a\n[2] b", "turns": ["a", "b"]}).input
    assert isinstance(given, Conversation)
    assert given.turns == ("a", "b")
