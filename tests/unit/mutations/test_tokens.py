from hypothesis import given

from mutations_support import by_operator, kinds, lost, mutations, prompts


@given(prompt=prompts)
def test_the_benign_ones_keep_facts(prompt) -> None:
    for mutation in mutations("token_manipulation", prompt, count=22):
        if mutation.kind == "benign":
            assert lost(prompt, mutation.text) == []


def test_every_operator_is_used() -> None:
    found = kinds("token_manipulation")
    assert by_operator("token_manipulation", count=80).keys() == found["benign"] | found["attack"]
    assert found["benign"] == {"odd_whitespace", "hyphenated"}


def test_an_invisible_order_is_invisible() -> None:
    prompt = "Book a flight"
    for mutation in by_operator("token_manipulation", prompt, count=80)["invisible_order"]:
        added = mutation.text.removeprefix(prompt)
        assert added
        assert all(0xE0000 <= ord(c) <= 0xE007F for c in added)
