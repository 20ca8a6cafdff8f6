"""Two faults, side by side: two tools fail, and the mean of no prices is taken. Its twin looks before it divides."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool

SHOPS = ("north", "south", "west")


def _prices() -> list[int]:
    found = []
    for name in SHOPS[:2]:
        try:
            found.append(int(tool(name)["price"]))
        except (*TOOL_FAILURES, TypeError):
            continue
    return found


def bug(prompt: str) -> str:
    prices = _prices()
    return f"The mean price is {sum(prices) / len(prices):.0f} EUR."


def twin(prompt: str) -> str:
    prices = _prices()
    return f"The mean price is {sum(prices) / len(prices):.0f} EUR." if prices else UNAVAILABLE
