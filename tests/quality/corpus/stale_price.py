"""A stale cache: the price is looked up again before it is confirmed, and if that fails the old one is confirmed
without a word. Its twin says so. The first look-up may fail without harm."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool


def _price() -> int | None:
    try:
        return int(tool("price", item="flight")["price"])
    except (*TOOL_FAILURES, TypeError):
        return None


def bug(prompt: str) -> str:
    quoted = _price()
    if quoted is None:
        return UNAVAILABLE
    return f"Confirmed: the price today is {_price() or quoted} EUR."


def twin(prompt: str) -> str:
    quoted = _price()
    confirmed = None if quoted is None else _price()
    return UNAVAILABLE if confirmed is None else f"Confirmed: the price today is {confirmed} EUR."
