"""Checksums against published numbers and against every single-digit error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.validators import VALIDATORS, luhn

_TAPROOT = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"

GOOD = {
    "credit_card": ["4111111111111111", "378282246310005", "6011 1111 1111 1117", "3530-1113-3330-0000"],
    "iban": ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "NO9386011117947"],
    "uk_nhs": ["943 476 5919", "4010232137"],
    "verhoeff": ["312345678909", "3998-7654-3211"],
    "tr_national_id": ["10000000146", "36493665440"],
    "fi_personal_identity_code": ["131052-308T", "020504a902e"],
    "au_abn": ["51 824 753 556"],
    "au_acn": ["005 499 981"],
    "au_tfn": ["876 543 210"],
    "pl_pesel": ["44051401359"],
    "es_nif": ["12345678Z", "X1234567L"],
    "sg_uen": ["53125226D"],
    "kr_brn": ["104-86-56659"],
    "us_npi": ["1234567893"],
    "se_personnummer": ["811228-9874"],
    "se_organisationsnummer": ["556703-7485"],
    "de_tax_id": ["12345678903"],
    "de_vat_id": ["DE136695976"],
    "de_kvnr": ["A123456780"],
    "de_rvnr": ["15070649C103"],
    "de_lanr": ["123456601"],
    "icao_9303": ["C01234565", "L01X00T44"],
    "fi_business_id": ["0112038-9"],
    "base58check": ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"],
    "bech32": ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", _TAPROOT],
}  # fmt: skip

BAD = {
    "credit_card": ["4111111111111112", "9999999999999995", "411111111111"],
    "iban": ["DE88370400440532013000", "XX82WEST12345698765432", "DE8937040044053201300", "DE893704004405320130001"],
    "us_ssn": ["000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000"],
    "ip_v4": ["256.1.1.1", "01.2.3.4"],
    "ip_v6": ["::2", "::", "2001::db8::1", "bad::cafe"],
    "mac_address": ["ff-ff-ff-ff-ff-ff", "10-11-12-13-14-15"],
    "phone_international": ["+1 415 555 013", "+44 1234"],
    "phone_national": ["00-0000-0000"],
    "phone_local": ["555-0132"],
    "email_address": ["a..b@example.org", "a.@example.org", "icon@2x.png"],
    "uk_nhs": ["9434765918", "0000000000"],
    "uk_nino": ["GB123456C"],
    "verhoeff": ["312345678908"],
    "fi_personal_identity_code": ["310289-211C", "131052-308U"],
    "bech32": ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"],
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
    ["verhoeff", "tr_national_id", "uk_nhs", "credit_card", "pl_pesel", "us_npi", "au_tfn", "de_tax_id", "au_abn"],
)
@given(data=st.data())
def test_any_single_wrong_digit_is_noticed(name: str, data: st.DataObject) -> None:
    text = "".join(c for c in GOOD[name][0] if c.isdigit())
    place = data.draw(st.integers(0, len(text) - 1))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[place]]))
    assert VALIDATORS[name](text[:place] + digit + text[place + 1 :]) == 0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_exactly_one_check_digit_satisfies_luhn(digits: list[int]) -> None:
    assert sum(luhn([*digits, check]) for check in range(10)) == 1
