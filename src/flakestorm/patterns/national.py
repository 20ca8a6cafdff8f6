"""Checksums and rules of numbers that one country issues; those of travel documents too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from flakestorm.patterns.checksums import digits_of, luhn, validator, weighted, whole

__all__: list[str] = []


_ADVERTISED = ("078051120", "219099999")  # printed on sample cards, and void since


@validator
def us_ssn(text: str) -> int:
    """Never issued: area 000, 666 and 900 to 999, group 00, serial 0000; nor are the numbers of sample cards."""
    number = "".join(map(str, digits_of(text)))
    area, group, serial = number[:3], number[3:5], number[5:]
    issued = area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"
    return whole(text, issued and number not in _ADVERTISED)


@validator
def uk_nhs(text: str) -> int:
    """Ten digits, weighted 10 to 2, check digit mod 11; not all the same."""
    digits = digits_of(text)
    check = 11 - sum(d * w for d, w in zip(digits[:9], range(10, 1, -1), strict=True)) % 11
    return whole(text, (0 if check == 11 else check) == digits[9] and len(set(digits)) > 1)


@validator
def uk_nino(text: str) -> int:
    """A prefix that is issued."""
    return whole(text, text[:2].upper() not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ"))


@validator
def tr_national_id(text: str) -> int:
    """Tenth digit from odd and even places, eleventh from the sum of the others."""
    d = digits_of(text)
    return whole(text, (sum(d[0:9:2]) * 7 - sum(d[1:8:2])) % 10 == d[9] and sum(d[:10]) % 10 == d[10])


_CENTURIES = {"+": 1800} | dict.fromkeys("-UVWXY", 1900) | dict.fromkeys("ABCDEF", 2000)


@validator
def fi_personal_identity_code(text: str) -> int:
    """A date that exists, an individual number from 002, and the check character mod 31."""
    code = text.upper()
    try:
        date(_CENTURIES[code[6]] + int(code[4:6]), int(code[2:4]), int(code[:2]))
    except ValueError:
        return 0
    check = "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(code[:6] + code[7:10]) % 31]
    return whole(text, int(code[7:10]) >= 2 and check == code[10])


@validator
def au_abn(text: str) -> int:
    """Eleven digits, the first less one, weighted sum a multiple of 89."""
    digits = digits_of(text)
    return whole(text, weighted([digits[0] - 1, *digits[1:]], (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)) % 89 == 0)


@validator
def au_acn(text: str) -> int:
    """Eight digits weighted 8 to 1, then the complement to a multiple of 10."""
    digits = digits_of(text)
    return whole(text, (weighted(digits[:8], range(8, 0, -1)) + digits[8]) % 10 == 0)


@validator
def au_tfn(text: str) -> int:
    """Nine digits, weighted sum a multiple of 11."""
    digits = digits_of(text)
    return whole(text, weighted(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0 and len(set(digits)) > 1)


@validator
def au_medicare(text: str) -> int:
    """Eight digits weighted 1 3 7 9, the ninth is the sum mod 10."""
    digits = digits_of(text)
    return whole(text, weighted(digits[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == digits[8])


@validator
def pl_pesel(text: str) -> int:
    """Weights 1 3 7 9, the eleventh digit makes the sum a multiple of 10."""
    digits = digits_of(text)
    return whole(text, (weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1))) % 10 == 0 and len(set(digits)) > 1)


@validator
def es_nif(text: str) -> int:
    """The letter is the number mod 23; X, Y and Z of foreigners stand for 0, 1 and 2."""
    code = re.sub(r"[ .-]", "", text.upper())
    number = code[:-1].translate(str.maketrans("XYZ", "012"))
    return whole(text, "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == code[-1])


@validator
def sg_uen(text: str) -> int:
    """The check letter of businesses (9), local companies (10), or all others (T, S or R in front)."""
    code = text.upper()
    if code[0] in "TSR":
        letters = "ABCDEFGHJKLMNPQRSTUVWX0123456789"
        total = weighted([letters.find(c) for c in code[:9]], (4, 3, 5, 3, 10, 2, 2, 5, 7))
        return whole(text, code[9] == letters[(total - 5) % 11])
    digits = digits_of(code)
    if len(digits) == 8:
        return whole(text, code[-1] == "XMKECAWLJDB"[weighted(digits, (10, 4, 9, 3, 8, 2, 7, 1)) % 11])
    return whole(text, code[-1] == "ZKCMDNERGWH"[weighted(digits, (10, 8, 6, 4, 9, 7, 5, 3, 1)) % 11])


@validator
def th_tnin(text: str) -> int:
    """Twelve digits weighted 13 to 2, check digit mod 11."""
    digits = digits_of(text)
    return whole(text, (11 - weighted(digits[:12], range(13, 1, -1)) % 11) % 10 == digits[12])


_KR_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)


@validator
def kr_rrn(text: str) -> int:
    """A date of birth, and the check digit mod 11."""
    digits = digits_of(text)
    return whole(text, (11 - weighted(digits[:12], _KR_WEIGHTS) % 11) % 10 == digits[12])


@validator
def kr_frn(text: str) -> int:
    """As for residents, the check digit shifted by 2."""
    digits = digits_of(text)
    return whole(text, (13 - weighted(digits[:12], _KR_WEIGHTS) % 11) % 10 == digits[12])


@validator
def kr_brn(text: str) -> int:
    """Weights 1 3 7 1 3 7 1 3 5, the ninth product counted with its tens."""
    digits = digits_of(text)
    total = weighted(digits[:9], (1, 3, 7, 1, 3, 7, 1, 3, 5)) + digits[8] * 5 // 10
    return whole(text, (10 - total % 10) % 10 == digits[9])


@validator
def us_dea(text: str) -> int:
    """Odd places plus twice the even ones; the last digit of that is the seventh."""
    digits = digits_of(text)[-7:]
    return whole(text, weighted(digits[:6], (1, 2, 1, 2, 1, 2)) % 10 == digits[6])


@validator
def us_npi(text: str) -> int:
    """Luhn with the prefix 80840, and not one digit nine times over."""
    digits = digits_of(text)
    return whole(text, luhn([8, 0, 8, 4, 0, *digits]) and len(set(digits[:9])) > 1)


@validator
def aba_routing(text: str) -> int:
    """A Federal Reserve prefix, weights 3 7 1, sum a multiple of 10."""
    digits = digits_of(text)
    prefix = digits[0] * 10 + digits[1]
    known = 0 < prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80
    return whole(text, known and weighted(digits, (3, 7, 1) * 3) % 10 == 0)


@validator
def se_personnummer(text: str) -> int:
    """A date (or, for co-ordination numbers, one with 60 added to its day) and Luhn over the last ten digits."""
    digits = digits_of(text)[-10:]
    month, day = digits[2] * 10 + digits[3], digits[4] * 10 + digits[5]
    return whole(text, 1 <= month <= 12 and (1 <= day <= 31 or 61 <= day <= 91) and luhn(digits))


@validator
def se_organisationsnummer(text: str) -> int:
    """Third digit from 2, so that it is no date, and Luhn."""
    digits = digits_of(text)
    return whole(text, digits[2] >= 2 and luhn(digits))


def _mod_11_10(digits: Sequence[int]) -> bool:
    """ISO/IEC 7064 MOD 11,10."""
    product = 10
    for digit in digits[:-1]:
        product = ((product + digit) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == digits[-1]


@validator
def de_tax_id(text: str) -> int:
    """No digit more than three times in the first ten, check digit mod 11,10."""
    digits = digits_of(text)
    return whole(text, max(map(digits[:10].count, digits[:10])) <= 3 and _mod_11_10(digits))


@validator
def de_vat_id(text: str) -> int:
    """DE and nine digits, check digit mod 11,10."""
    return whole(text, _mod_11_10(digits_of(text)))


@validator
def icao_9303(text: str) -> int:
    """The last digit is the sum of the others weighted 7 3 1, letters from A as 10, mod 10."""
    values = [int(c, 36) for c in text.upper()]
    return whole(text, any(c.isdigit() for c in text) and weighted(values[:-1], (7, 3, 1) * 3) % 10 == values[-1])


@validator
def de_id_card(text: str) -> int:
    """Nine characters, or ten of which the last is ICAO 9303's check digit."""
    return icao_9303(text) if len(text) == 10 else len(text)


@validator
def de_plz(text: str) -> int:
    """From 01001 to 99998."""
    return whole(text, 1001 <= int(text) <= 99998)


@validator
def de_lanr(text: str) -> int:
    """Six digits weighted 4 and 9, then the complement to a multiple of 10."""
    digits = digits_of(text)
    return whole(text, (weighted(digits[:6], (4, 9) * 3) + digits[6]) % 10 == 0)


def _cross_sums(digits: Sequence[int], weights: Sequence[int]) -> int:
    products = [digit * weight for digit, weight in zip(digits, weights, strict=True)]
    return sum(product // 10 + product % 10 for product in products)


def _spelled(text: str) -> list[int]:
    """The digits of a code whose letters stand for 01 to 26."""
    return [int(d) for c in text.upper() for d in (c if c.isdigit() else f"{ord(c) - 64:02}")]


@validator
def de_kvnr(text: str) -> int:
    """The letter as a number of two digits, weights 1 and 2, cross sums, mod 10."""
    digits = _spelled(text)
    return whole(text, _cross_sums(digits[:-1], (1, 2) * 5) % 10 == digits[-1])


@validator
def de_rvnr(text: str) -> int:
    """The letter as a number of two digits, weights of VKVV, cross sums, mod 10."""
    digits = _spelled(re.sub(r"[^0-9A-Za-z]", "", text))
    return whole(text, _cross_sums(digits[:-1], (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)) % 10 == digits[-1])


@validator
def fi_business_id(text: str) -> int:
    """Weights 7 9 10 5 8 4 2, check digit mod 11."""
    digits = digits_of(text)
    rest = weighted(digits[:7], (7, 9, 10, 5, 8, 4, 2)) % 11
    return whole(text, rest != 1 and (0 if rest == 0 else 11 - rest) == digits[7])
