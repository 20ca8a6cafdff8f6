"""How often texts have a word, roughly. Only which of two is rarer matters."""

from __future__ import annotations

import re
from functools import cache

__all__ = ["commonness"]

# Of so many words one is it. Measured on documentation, descriptions of packages, chats, e-mails and JSON.
_WORDS = {
    50: """
    a an and are as at be by com for http https i if in is it name not of on or s t that the this to user with you
    your
    """,
    300: """
    about access account add address addresses after agent all also amount any available based been before blocking
    business but c call called can cannot card change changes check class code content could created credit data date
    day details directory do does doesn don each end est every file first fix flakestorm flight flights follow
    following from function generate get github give given go has have help her here his history how id implements
    include including info information input insurance into ip issues its json just know last like list made make me
    message model more must my n need needs network new no none now null number one only origin other others our out
    output over own page passengers payment place please price prices proceed program provide provided pull py python
    read reply request reservation response run same say script see send set should show so some source start status
    string suspicious system tape tell test text than their them then there these they think those time today tokens
    tool total traffic two type up use used users using version want was way we were what when where which who will
    without work would
    """,
    1500: """
    able additional again ai allow am another answer answers anything api ask asked assist assistance assistant
    attacks attempts attributes audio avoid back because best better between block blocked booking boundary brand
    build calls cancel cancellation cancelled changed chat checked city client command company compare completion
    config configuration confirm console continue contract control conversation core cost country create current
    customer d database dear default description difference different docs document down during e else email
    environment error even everything example examples export false fault faults feature features feel files find form
    format found four free full functions further gateway gen good gpt great hello hi high home however html human
    image import important included includes install instruction instructions java job keep key keys known language
    latency latest left let library libs life line link linux llm local location log long look low m mail main
    malicious man many markdown matrix max may md mechanism messages metadata method methods might mode modules
    monitoring month most ms much never next note nothing numbers o object once open openai option optional options
    order original os package packets part passenger password path patterns people per performance person point policy
    possible potential predefined print private process project prompt properties public put pypi pytest query
    question real reason reasons receive received refund regards related release remote report requests require
    required reservations responses result results return rich right role round rule rules running runs saved says
    schema search second secret security server service session setting settings shall share shell short simple since
    something specific standard state states step steps still stop such support take takes tapes target team telemetry
    temperature thank thanks threats through times title token tools transfer travel trending trip true twitter types
    unauthorized under understand unfortunately united until update updating upgrade url value values versions weather
    week well while within woman word words world write writing written x year years yes
    """,
}
_COMMON = {word: 1 / one_in for one_in, words in _WORDS.items() for word in words.split()}
_RARE = 1e-5  # any other word
_PER_LETTER = 0.05  # how much rarer the words that begin or end with some letters are for each of them
_PER_NUMBER = 0.002
_PER_ZERO, _PER_A = 0.1, 0.7  # digits and letters of a shape
_PER_MARK = 0.03
_OF_ADDRESSES = re.compile(r"://|\.(?=[a-z])")  # marks that stand where the words next to them do
_PER_FOREIGN = 0.02  # a character that is not ASCII


@cache
def commonness(string: str) -> float:
    """How often texts have a string, 0 to 1.

    Args:
        string: of a text's shape (`shape.py`), or words in lower case;
            where it does not begin or end with a space, longer words may have it in them.
    """
    found = 1.0
    words = re.findall(r"[a-z0-9]+|[^a-z0-9 ]", _OF_ADDRESSES.sub("", string))
    for place, word in enumerate(words):
        if not word.isascii():
            found *= _PER_FOREIGN
        elif not word.isalnum():
            found *= _PER_MARK
        elif not word.strip("0a"):
            found *= _PER_ZERO ** word.count("0") * _PER_A ** word.count("a")
        else:
            longer = (place == 0 and string[0] != " ") + (place == len(words) - 1 and string[-1] != " ")
            known = _COMMON.get(word, _PER_NUMBER if word.isdigit() else _RARE)
            found *= known + longer * _PER_LETTER ** len(word)
    return found
