"""Three faults in a row: after the third refusal a price is made up. Its twin says that it gave up."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool


def _price() -> int | None:
    for _ in range(3):
        try:
            return int(tool("search")["price"])
        except (*TOOL_FAILURES, TypeError):
            continue
    return None


def bug(prompt: str) -> str:
    return f"The flight costs {_price() or 99} EUR."


def twin(prompt: str) -> str:
    price = _price()
    return UNAVAILABLE if price is None else f"The flight costs {price} EUR."
