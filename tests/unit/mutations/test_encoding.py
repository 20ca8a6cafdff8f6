import base64

from hypothesis import given

from mutations_support import by_operator, kinds, lost, mutations, prompts, undone

PLAIN = prompts.filter(lambda text: not any(0xD800 <= ord(c) <= 0xDFFF for c in text))
CLEAN = PLAIN.filter(lambda text: text.isprintable() and text.isascii())


@given(prompt=CLEAN)
def test_encodings_decode_back(prompt) -> None:
    for mutation in mutations("encoding_attacks", prompt, count=34):
        if mutation.operator != "morse":
            assert undone("encoding_attacks", mutation) == prompt, mutation.operator


@given(prompt=PLAIN)
def test_look_alikes_keep_facts_and_opaque_ones_are_attacks(prompt) -> None:
    for mutation in mutations("encoding_attacks", prompt, count=34):
        if mutation.kind == "benign":
            assert lost(prompt, mutation.text) == []


def test_the_kinds() -> None:
    found = kinds("encoding_attacks")
    assert {"base64", "hex", "rot13", "url"} <= found["attack"]
    assert {"zero_width", "homoglyphs", "full_width"} <= found["benign"]


def test_base64_stands_on_a_line_of_its_own() -> None:
    for mutation in by_operator("encoding_attacks", "Book a flight", count=120)["base64"]:
        assert base64.b64decode(mutation.text.splitlines()[-1]).decode() == "Book a flight"
