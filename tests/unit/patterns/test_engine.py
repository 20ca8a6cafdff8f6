"""Pattern sets answer alike with RE2 and without it."""

from __future__ import annotations

import pytest

from flakestorm.patterns import engine
from flakestorm.patterns.engine import Document, Matcher, encodable, loosened, near_words, rows_of, typed
from flakestorm.patterns.injection import injection_rows

re2 = pytest.importorskip("re2")


@pytest.mark.parametrize("module", [re2, None], ids=["re2", "re"])
def test_only_occurring_patterns_are_named(module: object) -> None:
    matcher = Matcher(["a+", r"\bcat\b", "z"], re2=module)
    assert matcher.occurring("a cat") == [0, 1]
    assert matcher.occurring("123") == []
    assert [m.span() for m in matcher.compiled[0].finditer("éa aa")] == [(1, 2), (3, 5)]


@pytest.mark.parametrize("module", [re2, None], ids=["re2", "re"])
def test_classes_are_ascii(module: object) -> None:
    assert Matcher([r"\d", r"\w"], re2=module).occurring("٣é") == []


@pytest.mark.parametrize("module", [re2, None], ids=["re2", "re"])
def test_places_are_in_characters(module: object) -> None:
    document = Document("äöü cat ü cat")
    matcher = Matcher(["cat"], re2=module, together=False)
    assert list(matcher.places(0, document)) == [(4, 7), (10, 13)]


def test_places_are_the_same_where_a_search_cannot_be_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document("a cat, äöü, a cat")
    matcher = Matcher(["cat", "x*"], together=False)
    directly = [list(matcher.places(index, document, [(0, 8), (8, 30)])) for index in (0, 1)]
    monkeypatch.setattr(engine, "_anchor", lambda name: None)
    assert [list(matcher.places(index, document, [(0, 8), (8, 30)])) for index in (0, 1)] == directly
    assert directly[0] == [(2, 5), (14, 17)]


def test_a_match_may_be_tried_at_a_place() -> None:
    matcher = Matcher(["c[a-z]+t", "é"], together=False)
    tried = matcher.starting(0)
    assert tried is not None
    data = "é a cat, cut".encode()
    assert [tried(data, at) for at in (0, 5, 6, 10)] == [-1, 8, -1, 13]
    assert Matcher(["cat"], re2=None).starting(0) is None


def test_spans_are_in_bytes_where_they_are_known() -> None:
    document = Document("é cat é cut")
    assert Matcher(["c.t"], together=False).spans(0, document) == [(3, 6), (10, 13)]
    assert Matcher(["c.t"], re2=None).spans(0, document) is None


def test_only_the_stretches_asked_for_are_read() -> None:
    assert list(Matcher(["cat"]).places(0, Document("ü cat cat"), [(6, 12)])) == [(6, 9)]


@pytest.mark.parametrize(
    ("source", "loose"),
    [(r"a[^\n]{0,80}?b{2,300}", r"a[^\n]{0,}?b{2,}"), (r"a{3,5}[{}]{2,}", None), (r"a\d{60}", None)],
)
def test_a_looser_form_has_no_large_counters(source: str, loose: str | None) -> None:
    assert loosened(source) == loose


def test_looked_for_loosely_first_the_same_is_found() -> None:
    sources = [row["pattern"] for row in injection_rows()]
    straight, loosely = Matcher(sources, together=False), Matcher(sources, together=False, loosely=True)
    assert len(loosely.loose) > 10
    texts = [text for row in injection_rows() for text in (*row["examples"], *row["counter_examples"])]
    far = "<!-- " + "far " * 60 + "system prompt -->"  # only the looser form reaches so far
    document = Document("\n".join([far, *texts, far]))
    middle = len(document.data) // 2
    for index in range(len(sources)):
        for within in (None, [(0, middle), (middle, len(document.data))]):
            assert [*loosely.places(index, document, within)] == [*straight.places(index, document, within)]


@pytest.mark.parametrize("file", ["pii.yaml", "refusals.yaml", "injection.yaml"])
def test_every_pattern_finds_the_same_places_with_and_without_re2(file: str) -> None:
    rows = injection_rows() if file == "injection.yaml" else rows_of(file)
    sources = [f"(?i){row['pattern']}" if file == "refusals.yaml" else row["pattern"] for row in rows]
    fast, plain = Matcher(sources, re2=re2), Matcher(sources, re2=None)
    texts = [text for row in rows for text in (*row["examples"], *row["counter_examples"])]
    for text in texts:
        assert fast.occurring(text) == plain.occurring(text), text
        for index in plain.occurring(text):
            mine, theirs = ([m.span() for m in side.compiled[index].finditer(text)] for side in (fast, plain))
            assert mine == theirs, (rows[index]["id"], text)


def test_what_is_not_ascii_is_told_apart() -> None:
    assert Document("aéb\u200bc").foreign.decode() == "é\u200b"


def test_a_text_is_as_typed_one_for_one() -> None:
    assert typed("a\u2011b\u202fc\uff14\uff20 é") == "a-b c4@ é"
    assert typed("as it is") == "as it is"


@pytest.mark.parametrize("text", ["여권번호는", "NHS番号", "เลขบัตรประชาชน", "护照NHS号码"])
def test_scripts_without_spaces_end_a_word(text: str) -> None:
    words = near_words(["여권", "nhs", "บัตรประชาชน"])
    assert words is not None
    assert words.search(text)


def test_near_words_are_whole_words_in_any_case() -> None:
    words = near_words(["ssn", "ss#"])
    assert words is not None
    assert words.search("my SSN:")
    assert words.search("SS# is")
    assert not words.search("session assn")
    assert near_words([]) is None


def test_encodable_keeps_positions() -> None:
    assert encodable("a\ud800b") == "a\ufffdb"
    assert encodable("ab") == "ab"
