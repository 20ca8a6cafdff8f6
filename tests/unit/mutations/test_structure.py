import json
from xml.etree import ElementTree

import yaml
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.mutations.base import TEXT_LIMIT
from flakestorm.mutations.structure import LONG
from mutations_support import by_operator, kinds, mutations

PRINTED = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=80)


def _innermost(value: object) -> object:
    while isinstance(value, (dict, list)):
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


@given(prompt=PRINTED)
def test_containers_give_the_prompt_back(prompt) -> None:
    found = by_operator("format_poisoning", prompt, count=39)
    assert all(prompt in json.loads(mutation.text).values() for mutation in found["json"])
    assert all(_innermost(json.loads(mutation.text)) == prompt for mutation in found["nested_json"])
    for mutation in found["yaml"]:
        assert prompt in yaml.safe_load(mutation.text).values()
    for mutation in found["xml"]:
        assert ElementTree.fromstring(mutation.text.partition("?>\n")[2] or mutation.text).text == prompt


def test_only_containers_are_benign() -> None:
    assert kinds("format_poisoning")["attack"] == {
        "role_field", "unclosed", "template", "xml_entity", "duplicate_keys",
    }  # fmt: skip


def test_from_nothing_to_very_long() -> None:
    sizes = [len(m.text) for m in mutations("length_extremes", "Book a flight to Oslo", count=60)]
    assert min(sizes) == 0
    assert LONG <= max(sizes) <= TEXT_LIMIT


def test_where_the_wish_is_still_there_it_is_benign() -> None:
    prompt = "Book a flight to Oslo"
    for mutation in mutations("length_extremes", prompt, count=60):
        if mutation.kind == "benign":
            assert prompt in mutation.text
