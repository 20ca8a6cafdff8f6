"""Checksums and rules that a pattern alone cannot express.

Each takes the matched text and returns how many of its characters are the real thing (all of them, or fewer where the
pattern ran on into what follows), or 0 when it is not one.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Sequence
from datetime import date

__all__ = ["VALIDATORS", "luhn", "weighted"]

VALIDATORS: dict[str, Callable[[str], int]] = {}


def _validator(check: Callable[[str], int]) -> Callable[[str], int]:
    VALIDATORS[check.__name__] = check
    return check


def _digits(text: str) -> list[int]:
    return [int(c) for c in text if c in "0123456789"]


def _all(text: str, valid: bool) -> int:
    return len(text) if valid else 0


def luhn(digits: list[int]) -> bool:
    """ISO/IEC 7812-1 annex B: every second digit from the right doubled, its digits summed, total a multiple of 10."""
    doubled = [d * 2 - 9 * (d > 4) for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_ISSUERS = (  # first digits, lengths
    (range(4, 5), (13, 16, 19)),  # Visa
    (range(50, 59), (16, 19)),  # Mastercard, Maestro, Dankort
    (range(2221, 2721), (16,)),  # Mastercard
    (range(34, 35), (15,)),  # American Express
    (range(37, 38), (15,)),
    (range(300, 306), (14,)),  # Diners Club
    (range(36, 37), (14,)),
    (range(38, 40), (14,)),
    (range(35, 36), (16,)),  # JCB
    (range(6, 7), (16, 17, 18, 19)),  # Discover, UnionPay, Maestro
    (range(1, 2), (15,)),  # UATP
)


@_validator
def credit_card(text: str) -> int:
    """A known issuer's number of the right length that satisfies Luhn."""
    digits = _digits(text)
    number = "".join(map(str, digits))
    issued = any(
        len(digits) in lengths and int(number[: len(str(prefixes.start))]) in prefixes for prefixes, lengths in _ISSUERS
    )
    return _all(text, issued and luhn(digits))


_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FK FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip


@_validator
def iban(text: str) -> int:
    """ISO 13616: the country's length and mod 97 = 1. Text after that length is not part of it."""
    wanted = _IBAN_LENGTHS.get(text[:2], 0)
    places = [i for i, c in enumerate(text) if c not in " -"]
    if not wanted or len(places) < wanted:
        return 0
    end = places[wanted - 1] + 1
    if end < len(text) and text[end] not in " -":
        return 0
    code = "".join(text[i] for i in places[:wanted])
    return end if int("".join(str(int(c, 36)) for c in code[4:] + code[:4])) % 97 == 1 else 0


@_validator
def email_address(text: str) -> int:
    """No doubled or final dot in the local part, and not a file name such as `icon@2x.png`."""
    local, _, host = text.partition("@")
    image = re.fullmatch(r"\d+(?:\.\d+)?x\.[a-z]{3,4}", host.lower())
    return _all(text, ".." not in local and not local.endswith(".") and not image)


@_validator
def phone_international(text: str) -> int:
    """E.164: 9 to 15 digits with the country code; exactly 11 in the North American plan."""
    digits = _digits(text)
    return _all(text, len(digits) == 11 if digits[0] == 1 else 9 <= len(digits) <= 15)


@_validator
def phone_national(text: str) -> int:
    """Ten or eleven digits, not all the same."""
    digits = _digits(text)
    return _all(text, len(digits) in (10, 11) and len(set(digits)) > 1)


@_validator
def phone_local(text: str) -> int:
    """Nine to eleven digits, not all the same, and not a date."""
    digits = _digits(text)
    return _all(text, 9 <= len(digits) <= 11 and len(set(digits)) > 1)


@_validator
def us_ssn(text: str) -> int:
    """Never issued: area 000, 666 and 900 to 999, group 00, serial 0000."""
    number = "".join(map(str, _digits(text)))
    area, group, serial = number[:3], number[3:5], number[5:]
    return _all(text, area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000")


@_validator
def ip_v4(text: str) -> int:
    """Four numbers below 256; leading zeros are no addresses."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return 0
    return len(text)


@_validator
def ip_v6(text: str) -> int:
    """An address with a digit in it and at least two groups, or `::1`: `[::2]` is a slice and `bad::cafe` is words."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return 0
    groups = [group for group in text.partition("%")[0].split(":") if group]
    telling = len(groups) > 1 or "." in text or groups in (["1"], ["fe80"], ["ff02"])
    return _all(text, telling and any(c in "0123456789" for c in text))


@_validator
def mac_address(text: str) -> int:
    """Not the broadcast or the null address, and not twelve digits in groups."""
    code = re.sub(r"[^0-9a-f]", "", text.lower())
    return _all(text, len(set(code)) > 1 and (":" in text or not code.isdigit()))


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


@_validator
def base58check(text: str) -> int:
    """Twenty-five bytes, the last four of which begin the double SHA-256 of the others."""
    number = 0
    for c in text:
        number = number * 58 + _BASE58.index(c)
    if number >= 1 << 200:
        return 0
    data = number.to_bytes(25, "big")
    digest = hashlib.sha256(hashlib.sha256(data[:21]).digest()).digest()
    return _all(text, data[0] in (0, 5) and digest[:4] == data[21:])


_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_STEPS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


@_validator
def bech32(text: str) -> int:
    """BIP 173 (remainder 1) or BIP 350 (bech32m), prefix `bc`."""
    values = [3, 3, 0, 2, 3, *(_BECH32.index(c) for c in text.lower()[3:])]  # 'bc', expanded as BIP 173 says
    state = 1
    for value in values:
        top, state = state >> 25, (state & 0x1FFFFFF) << 5 ^ value
        for bit, step in enumerate(_BECH32_STEPS):
            state ^= step if top >> bit & 1 else 0
    return _all(text, state in (1, 0x2BC830A3))


@_validator
def uk_nhs(text: str) -> int:
    """Ten digits, weighted 10 to 2, check digit mod 11; not all the same."""
    digits = _digits(text)
    check = 11 - sum(d * w for d, w in zip(digits[:9], range(10, 1, -1), strict=True)) % 11
    return _all(text, (0 if check == 11 else check) == digits[9] and len(set(digits)) > 1)


@_validator
def uk_nino(text: str) -> int:
    """A prefix that is issued."""
    return _all(text, text[:2].upper() not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ"))


_VERHOEFF_P = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _dihedral(a: int, b: int) -> int:
    """The product of the dihedral group of order 10."""
    if a < 5:
        return (a + b) % 5 if b < 5 else (a + b) % 5 + 5
    return (a - b) % 5 + 5 if b < 5 else (a - b) % 5


@_validator
def verhoeff(text: str) -> int:
    """Verhoeff's check digit, computed in the dihedral group; palindromes are never issued."""
    digits = _digits(text)
    state = 0
    for position, digit in enumerate(reversed(digits)):
        for _ in range(position % 8):
            digit = _VERHOEFF_P[digit]
        state = _dihedral(state, digit)
    return _all(text, state == 0 and digits != digits[::-1])


@_validator
def tr_national_id(text: str) -> int:
    """Tenth digit from odd and even places, eleventh from the sum of the others."""
    d = _digits(text)
    return _all(text, (sum(d[0:9:2]) * 7 - sum(d[1:8:2])) % 10 == d[9] and sum(d[:10]) % 10 == d[10])


_CENTURIES = {"+": 1800} | dict.fromkeys("-UVWXY", 1900) | dict.fromkeys("ABCDEF", 2000)


@_validator
def fi_personal_identity_code(text: str) -> int:
    """A date that exists, an individual number from 002, and the check character mod 31."""
    code = text.upper()
    try:
        date(_CENTURIES[code[6]] + int(code[4:6]), int(code[2:4]), int(code[:2]))
    except ValueError:
        return 0
    check = "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(code[:6] + code[7:10]) % 31]
    return _all(text, int(code[7:10]) >= 2 and check == code[10])


def weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    """The sum of digits, each times its weight."""
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


@_validator
def luhn_number(text: str) -> int:
    """Luhn, and not one digit over and over."""
    digits = _digits(text)
    return _all(text, luhn(digits) and len(set(digits)) > 1)


@_validator
def au_abn(text: str) -> int:
    """Eleven digits, the first less one, weighted sum a multiple of 89."""
    digits = _digits(text)
    return _all(text, weighted([digits[0] - 1, *digits[1:]], (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)) % 89 == 0)


@_validator
def au_acn(text: str) -> int:
    """Eight digits weighted 8 to 1, then the complement to a multiple of 10."""
    digits = _digits(text)
    return _all(text, (weighted(digits[:8], range(8, 0, -1)) + digits[8]) % 10 == 0)


@_validator
def au_tfn(text: str) -> int:
    """Nine digits, weighted sum a multiple of 11."""
    digits = _digits(text)
    return _all(text, weighted(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0 and len(set(digits)) > 1)


@_validator
def au_medicare(text: str) -> int:
    """Eight digits weighted 1 3 7 9, the ninth is the sum mod 10."""
    digits = _digits(text)
    return _all(text, weighted(digits[:8], (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == digits[8])


@_validator
def pl_pesel(text: str) -> int:
    """Weights 1 3 7 9, the eleventh digit makes the sum a multiple of 10."""
    digits = _digits(text)
    return _all(text, (weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1))) % 10 == 0 and len(set(digits)) > 1)


@_validator
def es_nif(text: str) -> int:
    """The letter is the number mod 23; X, Y and Z of foreigners stand for 0, 1 and 2."""
    code = re.sub(r"[ .-]", "", text.upper())
    number = code[:-1].translate(str.maketrans("XYZ", "012"))
    return _all(text, "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == code[-1])


@_validator
def sg_uen(text: str) -> int:
    """The check letter of businesses (9), local companies (10), or all others (T, S or R in front)."""
    code = text.upper()
    if code[0] in "TSR":
        letters = "ABCDEFGHJKLMNPQRSTUVWX0123456789"
        total = weighted([letters.find(c) for c in code[:9]], (4, 3, 5, 3, 10, 2, 2, 5, 7))
        return _all(text, code[9] == letters[(total - 5) % 11])
    digits = _digits(code)
    if len(digits) == 8:
        return _all(text, code[-1] == "XMKECAWLJDB"[weighted(digits, (10, 4, 9, 3, 8, 2, 7, 1)) % 11])
    return _all(text, code[-1] == "ZKCMDNERGWH"[weighted(digits, (10, 8, 6, 4, 9, 7, 5, 3, 1)) % 11])


@_validator
def th_tnin(text: str) -> int:
    """Twelve digits weighted 13 to 2, check digit mod 11."""
    digits = _digits(text)
    return _all(text, (11 - weighted(digits[:12], range(13, 1, -1)) % 11) % 10 == digits[12])


_KR_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)


@_validator
def kr_rrn(text: str) -> int:
    """A date of birth, and the check digit mod 11."""
    digits = _digits(text)
    return _all(text, (11 - weighted(digits[:12], _KR_WEIGHTS) % 11) % 10 == digits[12])


@_validator
def kr_frn(text: str) -> int:
    """As for residents, the check digit shifted by 2."""
    digits = _digits(text)
    return _all(text, (13 - weighted(digits[:12], _KR_WEIGHTS) % 11) % 10 == digits[12])


@_validator
def kr_brn(text: str) -> int:
    """Weights 1 3 7 1 3 7 1 3 5, the ninth product counted with its tens."""
    digits = _digits(text)
    total = weighted(digits[:9], (1, 3, 7, 1, 3, 7, 1, 3, 5)) + digits[8] * 5 // 10
    return _all(text, (10 - total % 10) % 10 == digits[9])


@_validator
def us_dea(text: str) -> int:
    """Odd places plus twice the even ones; the last digit of that is the seventh."""
    digits = _digits(text)[-7:]
    return _all(text, weighted(digits[:6], (1, 2, 1, 2, 1, 2)) % 10 == digits[6])


@_validator
def us_npi(text: str) -> int:
    """Luhn with the prefix 80840."""
    return _all(text, luhn([8, 0, 8, 4, 0, *_digits(text)]))


@_validator
def aba_routing(text: str) -> int:
    """A Federal Reserve prefix, weights 3 7 1, sum a multiple of 10."""
    digits = _digits(text)
    prefix = digits[0] * 10 + digits[1]
    known = 0 < prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80
    return _all(text, known and weighted(digits, (3, 7, 1) * 3) % 10 == 0)


@_validator
def se_personnummer(text: str) -> int:
    """A date (or, for co-ordination numbers, one with 60 added to its day) and Luhn over the last ten digits."""
    digits = _digits(text)[-10:]
    month, day = digits[2] * 10 + digits[3], digits[4] * 10 + digits[5]
    return _all(text, 1 <= month <= 12 and (1 <= day <= 31 or 61 <= day <= 91) and luhn(digits))


@_validator
def se_organisationsnummer(text: str) -> int:
    """Third digit from 2, so that it is no date, and Luhn."""
    digits = _digits(text)
    return _all(text, digits[2] >= 2 and luhn(digits))


def _mod_11_10(digits: Sequence[int]) -> bool:
    """ISO/IEC 7064 MOD 11,10."""
    product = 10
    for digit in digits[:-1]:
        product = ((product + digit) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == digits[-1]


@_validator
def de_tax_id(text: str) -> int:
    """No digit more than three times in the first ten, check digit mod 11,10."""
    digits = _digits(text)
    return _all(text, max(map(digits[:10].count, digits[:10])) <= 3 and _mod_11_10(digits))


@_validator
def de_vat_id(text: str) -> int:
    """DE and nine digits, check digit mod 11,10."""
    return _all(text, _mod_11_10(_digits(text)))


@_validator
def icao_9303(text: str) -> int:
    """The last digit is the sum of the others weighted 7 3 1, letters from A as 10, mod 10."""
    values = [int(c, 36) for c in text.upper()]
    return _all(text, any(c.isdigit() for c in text) and weighted(values[:-1], (7, 3, 1) * 3) % 10 == values[-1])


@_validator
def de_lanr(text: str) -> int:
    """Six digits weighted 4 and 9, then the complement to a multiple of 10."""
    digits = _digits(text)
    return _all(text, (weighted(digits[:6], (4, 9) * 3) + digits[6]) % 10 == 0)


def _cross_sums(digits: Sequence[int], weights: Sequence[int]) -> int:
    products = [digit * weight for digit, weight in zip(digits, weights, strict=True)]
    return sum(product // 10 + product % 10 for product in products)


def _spelled(text: str) -> list[int]:
    """The digits of a code whose letters stand for 01 to 26."""
    return [int(d) for c in text.upper() for d in (c if c.isdigit() else f"{ord(c) - 64:02}")]


@_validator
def de_kvnr(text: str) -> int:
    """The letter as a number of two digits, weights 1 and 2, cross sums, mod 10."""
    digits = _spelled(text)
    return _all(text, _cross_sums(digits[:-1], (1, 2) * 5) % 10 == digits[-1])


@_validator
def de_rvnr(text: str) -> int:
    """The letter as a number of two digits, weights of VKVV, cross sums, mod 10."""
    digits = _spelled(re.sub(r"[^0-9A-Za-z]", "", text))
    return _all(text, _cross_sums(digits[:-1], (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)) % 10 == digits[-1])


@_validator
def fi_business_id(text: str) -> int:
    """Weights 7 9 10 5 8 4 2, check digit mod 11."""
    digits = _digits(text)
    rest = weighted(digits[:7], (7, 9, 10, 5, 8, 4, 2)) % 11
    return _all(text, rest != 1 and (0 if rest == 0 else 11 - rest) == digits[7])


@_validator
def calendar_date(text: str) -> int:
    """Numbers that can be a day and a month, in either order."""
    numbers = [int(n) for n in re.findall(r"\d+", text.partition("T")[0])]
    years = [n for n in numbers if n > 31]
    small = [n for n in numbers if n <= 31]
    if re.search(r"[A-Za-z]{3}", text):
        return len(text)
    return _all(text, bool(small) and 0 not in small[:1] and min(small) <= 12 and len(years) <= 1)


_TOP_LEVEL_NAMES = """
    com org net edu gov mil int info biz io ai app dev co me tv cc ly gl us uk de fr es it nl be ch at se no dk fi
    pl cz pt gr ie ru ua tr il ae sa in cn jp kr tw hk sg my th id ph vn au nz ca mx br ar cl pe za ng ke eg eu asia
    site online store shop tech cloud xyz top club page blog news live life world space website email agency digital
    media bank law health name pro mobi museum travel jobs
"""
_TOP_LEVEL = frozenset(_TOP_LEVEL_NAMES.split())


@_validator
def bare_host(text: str) -> int:
    """A host name under a well-known top-level domain; longer suffixes are file names or abbreviations."""
    host = text.split("/")[0].split("?")[0].split(":")[0]
    return _all(text, host.rpartition(".")[2].lower() in _TOP_LEVEL)
