from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from flakestorm.errors import Misuse
from flakestorm.importers.files import FORMS, import_file, tape_names
from flakestorm.tape.reader import Tape
from importers_support import SSE, cassette, imported, request, response, said_sse, write_yaml


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_yaml(tmp_path / "test_booking.yaml", cassette())


@pytest.mark.parametrize("form", ["auto", "vcr"])
def test_a_cassette_becomes_a_tape_that_tells_what_was_said(file: Path, form: str) -> None:
    shown = imported(file, form=form)
    assert (shown["run"], shown["input"], shown["output"], shown["complete"]) == ("test_booking", None, "", True)
    [exchange] = shown["exchanges"]
    assert (exchange["site"], exchange["wire"]) == ("llm/gpt-4o#1", "openai_chat")
    assert exchange["reply"]["text"] == "Høyt ☃"
    assert (exchange["reply"]["finish"], exchange["reply"]["usage"]) == ("stop", {"input": 9, "output": 3})


def test_json_gzip_and_yaml_give_the_same_exchanges(tmp_path: Path) -> None:
    document = cassette((request(), response()), (request(), response(headers=SSE, body={"string": said_sse()})))
    shown = [imported(write_yaml(tmp_path / "a.yaml", document))]
    (tmp_path / "b.json").write_text(json.dumps(document))
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    shown += [imported(tmp_path / "b.json"), imported(tmp_path / "c.json.gz")]
    assert shown[0]["exchanges"] == shown[1]["exchanges"] == shown[2]["exchanges"]
    assert shown[0]["digest"] == shown[1]["digest"] == shown[2]["digest"]
    assert [e["reply"]["stream"] for e in shown[0]["exchanges"]] == [False, True]


def test_every_tape_has_a_name_of_its_own() -> None:
    files = ["a/x.yaml", "b/x.yaml", "c/X.yml", "x-2.json", "y.json.gz", "y[1].yaml", "plain", ".yaml"]
    names = tape_names(Path(file) for file in files)
    assert names[:2] == ["x.tape", "x-2.tape"]
    assert names[4:] == ["y.tape", "y[1].tape", "plain.tape", ".yaml.tape"]
    assert len({name.casefold() for name in names}) == len(files)


def test_a_recording_may_be_imported_again_from_anywhere(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tmp_path / "tapes" / "x.tape"
    import_file(file, tape)
    write_yaml(file, cassette(*[(request(), response())] * 3))
    monkeypatch.chdir(tmp_path)
    assert import_file(Path(file.name), Path("tapes/x.tape")).calls == {"llm": 3}
    assert Tape.open(tape).header["imported"] == {"from": "vcr", "file": f"../{file.name}"}


def test_nothing_else_is_overwritten(file: Path, tmp_path: Path) -> None:
    other, tape = write_yaml(tmp_path / "other.yaml", cassette()), tmp_path / "x.tape"
    import_file(file, tape)
    with pytest.raises(Misuse, match=r"other\.yaml: .*x\.tape is already there, the tape of another recording; "):
        import_file(other, tape)
    tape.write_text("precious")
    with pytest.raises(Misuse, match=r"is already there, and was not imported; choose another folder with -o"):
        import_file(file, tape)
    assert tape.read_text() == "precious"
    (tmp_path / "file").write_text("")
    with pytest.raises(Misuse, match="the folder cannot be made"):
        import_file(file, tmp_path / "file" / "x.tape")


@pytest.mark.parametrize(
    ("content", "form", "reason"),
    [
        ("log: {entries: []}", "auto", "its form is not known; what can be imported is a Langfuse export"),
        ("log: {entries: []}", "vcr", "it is not a VCR cassette"),
        ("interactions: [1]", "auto", "interactions[0] is not a pair"),
        ("", "auto", "it is empty"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(tmp_path: Path, content: str, form: str, reason: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(content)
    with pytest.raises(Misuse) as refused:
        import_file(file, tmp_path / "tapes" / "x.tape", form=form)
    assert str(refused.value).startswith(f"{file}: ")
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "tapes").exists()


def test_the_forms_are_told_apart_by_their_names() -> None:
    assert list(FORMS) == ["langfuse", "otel", "langsmith", "vcr"]
