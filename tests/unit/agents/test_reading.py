"""Reading replies: what is an output, what is the agent's own error, and what cannot be read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.agents.reading import USUAL_KEYS, ResponsePath, excerpt, read_body, read_value, render
from flakestorm.core.answer import AgentError
from flakestorm.errors import ConfigError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def read(data: object, path: str | None = None) -> str | AgentError:
    return read_body(json.dumps(data).encode(), None if path is None else ResponsePath(path))


def error(data: object, path: str | None = None) -> AgentError:
    got = read(data, path)
    assert isinstance(got, AgentError), got
    return got


REPLY = {"choices": [{"message": {"content": "hi"}}, {"message": {"content": "last"}}], "a b": {"c.d": 1}}


@pytest.mark.parametrize(
    ("path", "output"),
    [
        ("choices.0.message.content", "hi"),
        ("choices[0].message.content", "hi"),
        ("$.choices[1].message.content", "last"),
        ("choices.-1.message.content", "last"),
        ("$['choices'][0][\"message\"].content", "hi"),
        ("a b['c.d']", "1"),
        ("choices.0", '{"message": {"content": "hi"}}'),
    ],
)
def test_paths(path: str, output: str) -> None:
    assert read(REPLY, path) == output


def test_the_whole_reply() -> None:
    assert json.loads(str(read(REPLY, "$"))) == REPLY
    assert read_body(b"plain text\n", ResponsePath("$")) == "plain text\n"


def test_a_path_that_leads_nowhere_names_itself_and_what_is_there() -> None:
    missing = error(REPLY, "choices.0.message.text")
    assert missing.kind == "unreadable"
    assert "'choices.0.message.text'" in missing.message
    assert "no 'text' in 'choices.0.message', which has the keys content" in missing.message
    assert "list of 2" in error(REPLY, "choices.7").message
    assert "list of 2" in error(REPLY, "choices.one").message


@pytest.mark.parametrize("path", ["a[", "a[b]", "a..b", "[]", "a[0"])
def test_what_is_not_a_path_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"choices\.0\.message\.content"):
        ResponsePath(path)


def test_the_usual_keys_are_tried_in_order() -> None:
    for at, key in enumerate(USUAL_KEYS):
        assert read({later: later for later in reversed(USUAL_KEYS[at:])}) == key
    assert read({"output": None, "text": "second"}) == "second"
    assert read({"output": None}) == ""
    assert read({"output": ""}) == ""
    assert read({"output": ["é", 1, None]}) == '["é", 1, null]'


def test_a_string_is_itself_the_output_and_so_are_other_plain_values() -> None:
    assert read("hello") == "hello"
    assert read(True) == "true"
    assert read(None) == ""


def test_no_usual_key_names_the_keys_present() -> None:
    missing = error({"data": 1, "other": 2})
    assert missing.kind == "unreadable"
    assert "data, other" in missing.message
    assert "response_path" in missing.message
    assert error([{"output": "x"}]).kind == "unreadable"


def test_error_null_is_a_success() -> None:
    assert read({"error": None, "output": "fine"}) == "fine"
    assert read({"error": "", "message": "fine"}) == "fine"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"error": "boom"}, "boom"),
        ({"error": {"message": "boom", "code": 3}}, "boom"),
        ({"error": {"code": 3}}, '{"code": 3}'),
        ({"error": True, "message": "boom"}, "boom"),
        ({"error": "boom", "message": "see the log"}, "boom"),
        ({"error": "boom", "output": None}, "boom"),
        ({"error": "boom", "output": ""}, "boom"),
        ({"success": False, "message": "boom"}, "boom"),
        ({"success": False}, "did not say why"),
    ],
)
def test_an_error_without_an_output_is_the_agents_own(reply: object, said: str) -> None:
    got = error(reply)
    assert got.kind == "error"
    assert said in got.message


def test_an_error_beside_an_output_is_part_of_the_answer() -> None:
    assert read({"error": "a tool failed", "output": "I could not look it up"}) == "I could not look it up"


def test_an_error_explains_a_missing_path() -> None:
    assert error({"error": "boom"}, "data.text").kind == "error"
    assert error({"error": "boom", "data": {"text": ""}}, "data.text").kind == "error"
    assert read({"error": "boom", "data": {"text": "x"}}, "data.text") == "x"


@pytest.mark.parametrize("body", [b"<html>oops</html>", b"not json", b'{"output": "cut', b"[" * 100_000, b"\xff\xfe"])
def test_what_is_not_json_is_unreadable(body: bytes) -> None:
    got = read_body(body, None)
    assert isinstance(got, AgentError)
    assert got.kind == "unreadable"
    assert len(got.message) < 500


LATIN = '{"output": "caf\u00e9"}'.encode("latin-1")


@pytest.mark.parametrize(
    ("body", "content_type", "read_as"),
    [
        (LATIN, "application/json; charset=ISO-8859-1", "caf\u00e9"),
        (LATIN, 'application/json;odata=verbose; Charset="latin1"', "caf\u00e9"),
        ('{"output": "\u65e5\u672c"}'.encode("shift_jis"), "application/json; charset=Shift_JIS", "\u65e5\u672c"),
        (
            '{"output": "caf\u00e9"}'.encode(),
            "application/json; charset=ISO-8859-1",
            "caf\u00e9",
        ),  # it is UTF-8 after all
        ('{"output": "caf\u00e9"}'.encode("utf-16"), "application/json; charset=utf-16", "caf\u00e9"),
        (b'{"output": "a"}', "application/json; charset=utf-99", "a"),
    ],
)
def test_a_reply_is_read_in_the_charset_it_names(body: bytes, content_type: str, read_as: str) -> None:
    assert read_body(body, None, content_type) == read_as


@pytest.mark.parametrize(
    "charset", ["utf-99", "zlib", "rot13", "unicode_escape", "punycode", "idna", "a\0b", "utf-8", ""]
)
def test_what_is_no_charset_leaves_a_reply_unread(charset: str) -> None:
    got = read_body(LATIN, None, f"application/json; charset={charset}")
    assert isinstance(got, AgentError)
    named = charset not in ("utf-8", "")
    said = f"nor in its charset {charset!r}, which is unknown" if named else "no UTF-8; an agent that writes another"
    assert said in got.message
    assert read_body(LATIN, None, None) == read_body(LATIN, None)


def test_a_text_that_is_taken_whole_is_read_in_its_charset() -> None:
    whole = ResponsePath("$")
    assert read_body(b"caf\xe9", whole, "text/plain; charset=ISO-8859-1") == "caf\u00e9"
    assert read_body("caf\u00e9".encode(), whole, "text/plain; charset=ISO-8859-1") == "caf\u00e9"
    assert read_body(b"caf\xe9", whole, "text/plain") == "caf\ufffd"


def test_an_empty_reply_says_so() -> None:
    assert read_body(b" \n", None) == AgentError("unreadable", "the reply is empty")


@settings(deadline=None)
@given(JSON)
def test_whatever_comes_the_result_is_text_that_can_be_stored(data: object) -> None:
    for path in (None, ResponsePath("output"), ResponsePath("$")):
        got = read_value(data, path)
        (got if isinstance(got, str) else got.message).encode()


def test_python_values_become_text() -> None:
    assert render(b"caf\xc3\xa9") == "café"
    assert render((1, 2)) == "[1, 2]"
    loop: list[object] = []
    loop.append(loop)
    assert render(loop) == "[[...]]"
    assert render(KeyError) == "<class 'KeyError'>"


def test_excerpts_are_short_and_on_one_line() -> None:
    assert excerpt(b"a\n\n b") == '"a b"'
    assert excerpt("x" * 300) == f'"{"x" * 200}…"'
