"""National numbers against published ones and against every single-digit error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flakestorm.patterns.validators import VALIDATORS

GOOD = {
    "uk_nhs": ["943 476 5919", "4010232137"],
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
    "de_id_card": ["T220001293", "T22000129", "L01X00T471", "L01X00T47"],
    "de_plz": ["01067", "99998"],
    "fi_business_id": ["0112038-9"],
}  # fmt: skip

BAD = {
    "us_ssn": ["000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "078-05-1120"],
    "uk_nhs": ["9434765918", "0000000000"],
    "uk_nino": ["GB123456C"],
    "us_npi": ["1234567890", "1111111112"],
    "de_id_card": ["T220001290"],
    "de_plz": ["01000", "99999"],
    "fi_personal_identity_code": ["310289-211C", "131052-308U"],
}


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in GOOD.items() for t in texts])
def test_real_numbers_are_valid_whole(name: str, text: str) -> None:
    assert VALIDATORS[name](text) == len(text)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in BAD.items() for t in texts])
def test_wrong_numbers_are_not(name: str, text: str) -> None:
    assert VALIDATORS[name](text) == 0


@pytest.mark.parametrize("name", ["tr_national_id", "uk_nhs", "pl_pesel", "us_npi", "au_tfn", "de_tax_id", "au_abn"])
@given(data=st.data())
def test_any_single_wrong_digit_is_noticed(name: str, data: st.DataObject) -> None:
    text = "".join(c for c in GOOD[name][0] if c.isdigit())
    place = data.draw(st.integers(0, len(text) - 1))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[place]]))
    assert VALIDATORS[name](text[:place] + digit + text[place + 1 :]) == 0
