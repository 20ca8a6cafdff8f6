"""Checksums against published numbers and against every single-digit error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.validators import VALIDATORS

_TAPROOT = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"

GOOD = {
    "credit_card": ["4111111111111111", "378282246310005", "6011 1111 1111 1117", "3530-1113-3330-0000"],
    "iban": ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "NO9386011117947"],
    "verhoeff": ["312345678909", "3998-7654-3211"],
    "base58check": ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"],
    "bech32": ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", _TAPROOT],
    "eip55": ["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB"],
    "not_one_digit": ["021234568"],
    "has_digit": ["SMITH*A123B4"],
    "ip_v6": ["2001:db8::1", "::1", "fe80::", "::ffff:192.0.2.1", "1:2:3::"],
}  # fmt: skip

BAD = {
    "credit_card": ["4111111111111112", "9999999999999995", "411111111111"],
    "iban": ["DE88370400440532013000", "XX82WEST12345698765432", "DE8937040044053201300", "DE893704004405320130001"],
    "ip_v4": ["256.1.1.1", "01.2.3.4"],
    "ip_v6": ["::2", "::", "1::2", "2001::db8::1", "bad::cafe"],
    "mac_address": ["ff-ff-ff-ff-ff-ff", "10-11-12-13-14-15"],
    "phone_international": ["+1 415 555 013", "+44 1234"],
    "phone_national": ["00-0000-0000"],
    "phone_local": ["555-0132"],
    "email_address": ["a..b@example.org", "a.@example.org", "icon@2x.png"],
    "verhoeff": ["312345678908"],
    "bech32": ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"],
    "eip55": ["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d35a", "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359"],
    "not_one_digit": ["000000000"],
    "has_digit": ["ABCDEFGHIJKL"],
    "base58check": ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", "3" + "z" * 34],
}


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in GOOD.items() for t in texts])
def test_real_numbers_are_valid_whole(name: str, text: str) -> None:
    assert VALIDATORS[name](text) == len(text)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in BAD.items() for t in texts])
def test_wrong_numbers_are_not(name: str, text: str) -> None:
    assert VALIDATORS[name](text) == 0


def test_an_iban_ends_where_its_country_says() -> None:
    assert VALIDATORS["iban"]("NL91 ABNA 0417 1643 00 TODAY") == len("NL91 ABNA 0417 1643 00")


@pytest.mark.parametrize(
    "name",
    ["verhoeff", "credit_card"],
)
@given(data=st.data())
def test_any_single_wrong_digit_is_noticed(name: str, data: st.DataObject) -> None:
    text = "".join(c for c in GOOD[name][0] if c.isdigit())
    place = data.draw(st.integers(0, len(text) - 1))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[place]]))
    assert VALIDATORS[name](text[:place] + digit + text[place + 1 :]) == 0
