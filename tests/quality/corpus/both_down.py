"""Two faults, one behind the other: search and backup fail, and a price is made up. Its twin says that both failed."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool


def _price(prompt: str) -> int | None:
    for name in ("search", "backup"):
        try:
            return int(tool(name, query=prompt)["price"])
        except (*TOOL_FAILURES, TypeError):
            continue
    return None


def bug(prompt: str) -> str:
    return f"The flight costs {_price(prompt) or 99} EUR."


def twin(prompt: str) -> str:
    price = _price(prompt)
    return UNAVAILABLE if price is None else f"The flight costs {price} EUR."
