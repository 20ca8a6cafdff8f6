import pytest

from mutations_support import mutations

TYPES = ["paraphrase", "semantic_similarity_attack"]


@pytest.mark.parametrize("kind", TYPES)
def test_ten_of_a_plain_order_are_no_trouble(kind) -> None:
    assert len(mutations(kind, "Book a flight to Oslo", count=10)) == 10


def test_an_order_becomes_a_request_in_good_grammar() -> None:
    said = {m.text for m in mutations("paraphrase", "Book a flight to Oslo", count=80)}
    assert "Could you book a flight to Oslo?" in said
    assert not any(" a air" in text or "Could you Book" in text for text in said)
