import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.core.site import KINDS, Site, Sites

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(st.sampled_from(KINDS), NAMES, st.integers(1, 10**6))
def test_every_name_survives_the_written_form(kind, name, occurrence) -> None:
    site = Site(kind, name, occurrence)
    assert Site.parse(str(site)) == site


@given(st.sampled_from(KINDS), NAMES, st.integers(1, 99))
def test_the_written_form_has_no_character_the_fault_form_needs(kind, name, occurrence) -> None:
    text = str(Site(kind, name, occurrence))
    assert text.count("#") == 1
    assert not set(text) & set("=, \n\t")


@pytest.mark.parametrize(
    "text", ["", "tool/search", "tool/search#0", "search#1", "toool/search#1", "tool/#1", "tool/a#x"]
)
def test_what_is_not_a_site_is_refused_with_an_example(text) -> None:
    with pytest.raises(ValueError, match="for example tool/search#1"):
        Site.parse(text)


def test_occurrences_count_per_kind_and_name() -> None:
    sites = Sites()
    order = [("tool", "a"), ("llm", "a"), ("tool", "a"), ("tool", "b")]
    assert [str(sites.next(kind, name)) for kind, name in order] == ["tool/a#1", "llm/a#1", "tool/a#2", "tool/b#1"]
    assert sites.seen("tool") == ("a", "b")
    assert (sites.count("tool"), sites.count("mcp")) == (3, 0)
