"""Checksums and rules that a pattern alone cannot express.

Each takes the matched text and returns how many of its characters are the real thing (all of them, or fewer where the
pattern ran on into what follows), or 0 when it is not one.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from functools import lru_cache

from flakestorm.patterns import national as _national  # noqa: F401 - it registers its checks
from flakestorm.patterns.checksums import VALIDATORS, digits_of, keccak_256, luhn, validator, whole

__all__ = ["VALIDATORS", "endings"]

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


@validator
def credit_card(text: str) -> int:
    """A known issuer's number of the right length that satisfies Luhn."""
    digits = digits_of(text)
    number = "".join(map(str, digits))
    issued = any(
        len(digits) in lengths and int(number[: len(str(prefixes.start))]) in prefixes for prefixes, lengths in _ISSUERS
    )
    return whole(text, issued and luhn(digits))


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


@validator
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


@validator
def email_address(text: str) -> int:
    """No doubled or final dot in the local part, and not a file name such as `icon@2x.png`."""
    local, _, host = text.partition("@")
    image = re.fullmatch(r"\d+(?:\.\d+)?x\.[a-z]{3,4}", host.lower())
    return whole(text, ".." not in local and not local.endswith(".") and not image)


@validator
def phone_international(text: str) -> int:
    """E.164: 9 to 15 digits with the country code; exactly 11 in the North American plan."""
    digits = digits_of(text)
    return whole(text, len(digits) == 11 if digits[0] == 1 else 9 <= len(digits) <= 15)


@validator
def phone_national(text: str) -> int:
    """Ten or eleven digits, not all the same."""
    digits = digits_of(text)
    return whole(text, len(digits) in (10, 11) and len(set(digits)) > 1)


@validator
def phone_local(text: str) -> int:
    """Nine to eleven digits, not all the same, and not a date."""
    digits = digits_of(text)
    return whole(text, 9 <= len(digits) <= 11 and len(set(digits)) > 1)


@validator
def ip_v4(text: str) -> int:
    """Four numbers below 256; leading zeros are no addresses."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return 0
    return len(text)


@validator
def ip_v6(text: str) -> int:
    """An address with a digit in it and, of more than one group, one longer than an index; or `::1`.

    `[::2]` and `[1::2]` are slices, and `bad::cafe` is words.
    """
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return 0
    groups = [group for group in text.partition("%")[0].split(":") if group]
    several = len(groups) > 2 or (len(groups) == 2 and max(map(len, groups)) > 2)
    telling = several or "." in text or groups in (["1"], ["fe80"], ["ff02"])
    return whole(text, telling and any(c in "0123456789" for c in text))


@validator
def mac_address(text: str) -> int:
    """Not the broadcast or the null address, and not twelve digits in groups."""
    code = re.sub(r"[^0-9a-f]", "", text.lower())
    return whole(text, len(set(code)) > 1 and (":" in text or not code.isdigit()))


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


@validator
def base58check(text: str) -> int:
    """Twenty-five bytes, the last four of which begin the double SHA-256 of the others."""
    number = 0
    for c in text:
        number = number * 58 + _BASE58.index(c)
    if number >= 1 << 200:
        return 0
    data = number.to_bytes(25, "big")
    digest = hashlib.sha256(hashlib.sha256(data[:21]).digest()).digest()
    return whole(text, data[0] in (0, 5) and digest[:4] == data[21:])


_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_STEPS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


@validator
def bech32(text: str) -> int:
    """BIP 173 (remainder 1) or BIP 350 (bech32m), prefix `bc`."""
    values = [3, 3, 0, 2, 3, *(_BECH32.index(c) for c in text.lower()[3:])]  # 'bc', expanded as BIP 173 says
    state = 1
    for value in values:
        top, state = state >> 25, (state & 0x1FFFFFF) << 5 ^ value
        for bit, step in enumerate(_BECH32_STEPS):
            state ^= step if top >> bit & 1 else 0
    return whole(text, state in (1, 0x2BC830A3))


@validator
def eip55(text: str) -> int:
    """EIP-55: a letter is upper case where its place in the Keccak-256 of the address in lower case is 8 or more."""
    address = text[2:]
    lower = address.lower()
    if address in (lower, address.upper()):
        return 0  # no checksum in it
    marks = keccak_256(lower.encode()).hex()
    right = (c.isdigit() or c.isupper() == (int(mark, 16) >= 8) for c, mark in zip(address, marks[:40], strict=True))
    return whole(text, all(right))


_VERHOEFF_P = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _dihedral(a: int, b: int) -> int:
    """The product of the dihedral group of order 10."""
    if a < 5:
        return (a + b) % 5 if b < 5 else (a + b) % 5 + 5
    return (a - b) % 5 + 5 if b < 5 else (a - b) % 5


@validator
def verhoeff(text: str) -> int:
    """Verhoeff's check digit, computed in the dihedral group; palindromes are never issued."""
    digits = digits_of(text)
    state = 0
    for position, digit in enumerate(reversed(digits)):
        for _ in range(position % 8):
            digit = _VERHOEFF_P[digit]
        state = _dihedral(state, digit)
    return whole(text, state == 0 and digits != digits[::-1])


@validator
def luhn_number(text: str) -> int:
    """Luhn, and not one digit over and over."""
    digits = digits_of(text)
    return whole(text, luhn(digits) and len(set(digits)) > 1)


@validator
def not_one_digit(text: str) -> int:
    """Not one digit over and over."""
    return whole(text, len(set(digits_of(text))) > 1)


@validator
def has_digit(text: str) -> int:
    """A digit among letters: else it is a word."""
    return whole(text, bool(digits_of(text)))


_MONTH = re.compile(r"[A-Za-z]{3}")
_NUMBER = re.compile(r"\d+")
_DATES = 1024  # a text has few dates, many times


@validator
@lru_cache(_DATES)
def calendar_date(text: str) -> int:
    """Numbers that can be a day and a month, in either order."""
    if _MONTH.search(text):
        return len(text)
    numbers = [*map(int, _NUMBER.findall(text.partition("T")[0]))]
    small = [n for n in numbers if n <= 31]  # a larger one is the year
    return whole(text, bool(small) and small[0] > 0 and min(small) <= 12 and len(numbers) - len(small) <= 1)


_TOP_LEVEL_NAMES = """
    com org net edu gov mil int info biz io ai app dev co me tv cc ly gl us uk de fr es it nl be ch at se no dk fi
    pl cz pt gr ie ru ua tr il ae sa in cn jp kr tw hk sg my th id ph vn au nz ca mx br ar cl pe za ng ke eg eu asia
    site online store shop tech cloud xyz top club page blog news live life world space website email agency digital
    media bank law health pro mobi museum travel jobs
"""
_TOP_LEVEL = frozenset(_TOP_LEVEL_NAMES.split())


def endings() -> frozenset[str]:
    """How a name that `bare_host` accepts may end, in lower case."""
    return frozenset(f".{name}" for name in _TOP_LEVEL)


@validator
def bare_host(text: str) -> int:
    """A host name under a well-known top-level domain; longer suffixes are file names or abbreviations."""
    host = text.split("/")[0].split("?")[0].split(":")[0]
    return whole(text, host.rpartition(".")[2].lower() in _TOP_LEVEL)
