"""From a mark the same is found as by reading the text as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns import literals
from flakestorm.patterns.engine import Document, Matcher, rows_of
from flakestorm.patterns.marks import from_hosts, from_mark
from flakestorm.patterns.rules import matches, rule_of

ROWS = {row["id"]: row for row in rows_of("pii.yaml")}
MAIL, HOST, URL = ROWS["email-address"], ROWS["url-bare"], ROWS["url"]
MATCHER = Matcher([MAIL["pattern"], HOST["pattern"], URL["pattern"]], together=False)
pytest.importorskip("re2")
pytest.importorskip("ahocorasick_rs")


@given(st.lists(st.sampled_from(["a", "bc", ".", "@", "-", "..", "org", "é", " ", "+", "x" * 70, "example.com"])))
def test_mail_is_found_from_its_mark(parts: list[str]) -> None:
    document = Document("".join(parts))
    find = from_mark(MATCHER, 0, MAIL["pattern"], "@")
    assert list(find(document)) == list(MATCHER.places(0, document))


@pytest.mark.parametrize("times", [1, 24, 25, 400])
def test_however_many_marks_there_are_the_same_is_found(times: int) -> None:
    document = Document("é ada@example.org, @x, b@c.d@e.org; " * times)
    find = from_mark(MATCHER, 0, MAIL["pattern"], "@")
    assert list(find(document)) == list(MATCHER.places(0, document))


def test_without_re2_the_whole_text_is_read() -> None:
    matcher = Matcher([MAIL["pattern"], HOST["pattern"]], re2=None)
    assert list(from_mark(matcher, 0, MAIL["pattern"], "@")(Document("é ada@example.org"))) == [(2, 17)]
    assert list(from_hosts(matcher, 1)(Document("é example.org"), []) or ()) == [(2, 13)]


def test_what_stands_in_front_of_a_mark_must_be_readable_from_its_end() -> None:
    with pytest.raises(ValueError, match="is not read from its end"):
        from_mark(MATCHER, 0, "(?:ab|c)+@", "@")
    with pytest.raises(ValueError, match="is not read from its end"):
        from_mark(MATCHER, 0, "[ab][c]{0,3}@", "@")


def hosts(document: Document, spans: Any) -> list[str]:
    rule = rule_of(HOST)
    return [document.text[each.start : each.end] for each in matches(rule, document.text, spans)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see example.com, sub.example.org/a?c, a.io:80.", ["example.com", "sub.example.org/a?c,", "a.io:80"]),
        ("https://example.com/?q=other.org and more.net", ["more.net"]),
        ("https://example.com?q=other.org and more.net", ["other.org", "more.net"]),
        ("https://example.com#other.org, more.net", ["other.org", "more.net"]),
        ("https://example.com/a#other.org(x.com) more.net", ["more.net"]),
        ("https://example.com/a?b#(x.com)", []),
        ("https://a.b.example.co.uk,x.com", ["x.com"]),
        ("x@example.com or @example.com or ./example.com or -example.com", []),
        ("é example.COM é (example.com)", ["example.COM", "example.com"]),
        ("app.config file.py v1.2 e.g. a.completely.different thing", []),
        ("", []),
    ],
)  # fmt: skip
def test_hosts_are_found_outside_of_addresses(text: str, found: list[str]) -> None:
    for times in (1, 40):
        document = Document(f"{text}\n" * times)
        addresses = MATCHER.spans(2, document) or []
        find = from_hosts(MATCHER, 1)
        assert hosts(document, find(document, addresses) or ()) == hosts(document, MATCHER.places(1, document))
        assert hosts(document, find(document, []) or ()) == hosts(document, MATCHER.places(1, document))
    assert hosts(Document(text), find(Document(text), []) or ()) == found


def test_a_text_of_one_long_address_is_read_in_proportion_to_its_length() -> None:
    """Each host in it is asked about once, whatever its place: more than that would not end in this test's time."""
    document = Document("https://a.example?" + "x.com," * 60_000)
    addresses = MATCHER.spans(2, document) or []
    assert len(addresses) == 1
    assert len(hosts(document, from_hosts(MATCHER, 1)(document, addresses) or ())) == 60_000


def test_without_the_library_for_it_hosts_are_looked_for_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(literals, "_library", lambda: None)
    document = Document("see example.com")
    assert hosts(document, from_hosts(MATCHER, 1)(document, []) or ()) == ["example.com"]
