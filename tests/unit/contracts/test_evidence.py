from hypothesis import given
from hypothesis import strategies as st

from flakestorm.contracts.evidence import QUOTE_CHARS, brief, mask, plain, quote, quote_around


def test_the_beginning_of_a_long_text_is_quoted() -> None:
    assert quote("Your flight\n is   booked.") == '"Your flight is booked."'
    assert quote("word " * 100, 14) == '"word word word…"'
    assert quote(" \n") == "an empty output"


@given(st.text(max_size=2000))
def test_a_quote_is_one_short_printable_line(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert len(shown) <= QUOTE_CHARS * 10 + 1  # every character may need an escape


def test_terminal_codes_are_escaped() -> None:
    assert plain("\x1b[2Jgone") == "\\x1b[2Jgone"


def test_a_find_is_quoted_with_its_surroundings() -> None:
    text = "a" * 500 + " secret " + "b" * 500
    start = text.index("secret")
    shown = quote_around(text, start, start + 6, 30)
    assert shown.startswith('"…a')
    assert "secret" in shown
    assert shown.endswith('b…"')
    assert len(shown) < 40


def test_a_secret_is_masked() -> None:
    assert mask("jo@example.com") == "j***m"
    assert mask("1234") == "***"
    assert mask("") == "***"


def test_an_error_is_told_by_its_first_and_last_line() -> None:
    assert brief("KeyError: 'x'\n    a.py:3 in f\n\n    b.py:9 in g\n") == "KeyError: 'x' … b.py:9 in g"
    assert brief("  only one\n\n") == "only one"
    assert brief(" \n") == ""


@given(st.text(max_size=2000))
def test_an_error_is_one_short_printable_line(text: str) -> None:
    shown = brief(text, 40)
    assert shown == "" or shown.isprintable()
    assert len(shown) <= 2 * 10 * 41 + 3  # an escape may take ten characters
