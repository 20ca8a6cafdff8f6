"""Sessions in files, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.config.load import loads
from flakestorm.config.replays import ReplaySession, ToolResponse
from flakestorm.errors import ConfigError
from flakestorm.sessions.files import file_name, in_config, read_sessions, session_document, write_session

ONE = {"id": "a", "input": "go", "contract": "c"}


def write(file: Path, document: object) -> Path:
    file.write_text(yaml.safe_dump(document) if file.suffix == ".yaml" else json.dumps(document))
    return file


def ids(path: Path) -> list[str]:
    return [incident.session.id for incident in read_sessions(path, contract="c")]


def test_one_several_and_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", ONE)
    write(tmp_path / "b.yaml", {"sessions": [{**ONE, "id": "b"}, {**ONE, "id": "c"}]})
    write(tmp_path / "c.json", [{**ONE, "id": "d"}])
    write(tmp_path / "d.json", {"file": "a.yaml"})
    (tmp_path / "notes.txt").write_text("no session")
    assert ids(tmp_path) == ["a", "b", "c", "d", "a"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({**ONE, "inputs": "x"}, "inputs"),
        ({**ONE, "tool_responses": [{"tool": "t", "responce": 1}]}, "responce"),
        ([1], "mapping"),
        ({"file": "x.yaml"}, "names its own file"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, document: object, said: str) -> None:
    file = write(tmp_path / "x.yaml", document)
    with pytest.raises(ConfigError, match=said) as error:
        read_sessions(file, contract="c")
    assert "x.yaml" in str(error.value)


def test_an_empty_folder_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no session"):
        read_sessions(tmp_path, contract="c")
    with pytest.raises(ConfigError, match="there is no such session file"):
        read_sessions(tmp_path / "gone.yaml", contract="c")


def test_sessions_of_a_config(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", ONE)
    config = loads(
        'version: "2.0"\nagent: {type: python, endpoint: "a:b"}\ngolden_prompts: [x]\n'
        "replays: {sessions: [{file: a.yaml}, {id: inline, input: x}]}\n",
        folder=tmp_path,
    )
    found = in_config(config, contract="c")
    assert [(i.session.id, i.file and i.file.name) for i in found] == [("a", "a.yaml"), ("inline", None)]


@given(st.text(min_size=1), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, said: str, value: object) -> None:
    if any(0xD800 <= ord(c) < 0xE000 for c in f"{said}{value}"):
        return  # no file in UTF-8 holds half a character
    file = tmp_path_factory.mktemp("s") / "s.yaml"
    responses = [ToolResponse(tool="t", response=value, status=0), ToolResponse(tool="u", response=said)]
    session = ReplaySession(id="a", input=said, contract="c", tool_responses=responses)
    write_session(session, file, about=["what\nfailed"])
    (found,) = read_sessions(file, contract="c")
    assert found.session == session


def test_a_document_says_only_what_is_set() -> None:
    session = ReplaySession(id="a", input="x", contract="default", tool_responses=[ToolResponse(tool="t")])
    assert session_document(session) == {
        "id": "a",
        "input": "x",
        "tool_responses": [{"tool": "t"}],
        "contract": "default",
    }


@pytest.mark.parametrize(("name", "file"), [("a b/c", "a-b-c.yaml"), ("..", "session.yaml"), ("é", "é.yaml")])
def test_file_names(name: str, file: str) -> None:
    assert file_name(name) == file
