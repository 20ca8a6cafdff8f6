from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.importers import document
from flakestorm.importers.document import MAX_BYTES, read_document


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recording"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, "é"]}',
        "a:\n- 1\n- é\n",
        '  \n{"a": [1, "\\u00e9"]}',
        "\ufeffa: [1, é]",
        '\ufeff{"a": [1, "é"]}',
        "{a: [1, é]}",
    ],
)
def test_json_and_yaml_are_told_by_their_content(file: Path, text: str, pack: type[bytes]) -> None:
    file.write_bytes(pack(text.encode()))
    assert read_document(file) == {"a": [1, "é"]}


def test_what_only_the_standard_encoder_writes_is_read(file: Path) -> None:
    file.write_text('{"half": "\\ud83d", "none": NaN, "tab": "a\\tb"}')
    found = read_document(file)
    assert (found["half"], found["tab"]) == ("\ud83d", "a\tb")
    assert found["none"] != found["none"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b" \n ", "it is empty"),
        (gzip.compress(b"", mtime=0), "it is empty"),
        (b'{"a": [1, 2', "it is not valid JSON: line 1: "),
        (b'{"a": \xff}', "it is not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "limit"),
        (b"\x1f\x8bnot really", "it is gzip data, and damaged"),
        (gzip.compress(b"a: 1" * 99, mtime=0)[:-12], "damaged or cut short"),
        (b"a: [", "it is not valid YAML"),
        (b"PK\x03\x04", "it is not valid YAML"),
    ],
)
def test_what_cannot_be_read_is_refused(file: Path, content: bytes, reason: str) -> None:
    file.write_bytes(content)
    with pytest.raises(ValueError) as refused:
        read_document(file)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it cannot be read: No such file"):
        read_document(tmp_path / "none")
    with pytest.raises(ValueError, match="it cannot be read: Is a directory"):
        read_document(tmp_path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_size_is_bounded_before_and_after_unpacking(
    file: Path, monkeypatch: pytest.MonkeyPatch, pack: type[bytes]
) -> None:
    assert MAX_BYTES == 64 * 2**20
    monkeypatch.setattr(document, "MAX_BYTES", 2**20)
    file.write_bytes(pack(b" " * 2**20))
    with pytest.raises(ValueError, match="it is empty"):
        read_document(file)
    file.write_bytes(pack(b" " * (2**20 + 1)))
    with pytest.raises(ValueError, match="it is larger than 1 MB"):
        read_document(file)


def test_a_gzip_bomb_is_refused(file: Path) -> None:
    file.write_bytes(gzip.compress(gzip.compress(bytes(2**20)) + b"x" * 10) + gzip.compress(bytes(2 * MAX_BYTES)))
    assert file.stat().st_size < 2**20
    with pytest.raises(ValueError, match="it is larger than 64 MB"):
        read_document(file)


def test_more_values_than_can_be_held_are_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_VALUES", 1000)
    for many in ([[]] * 1001, ["a"] * 1001, {str(n): n for n in range(501)}, ["\\"] * 1001):
        file.write_text(json.dumps(many))
        with pytest.raises(ValueError, match="it holds more than 1,000 values"):
            read_document(file)
    text = {"a": ",[{:" * 1000, "b": '"\\"' * 1000}  # what looks like structure inside a text is none
    file.write_text(json.dumps(text))
    assert read_document(file) == text


@given(content=st.binary(max_size=200) | st.text(alphabet='{}[]":, \\ab01', max_size=80).map(str.encode))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(content)
    with suppress(ValueError):
        read_document(file)
