"""A swallowed exception: the search fails, and the agent makes a price up. Its twin says that it failed."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool


def bug(prompt: str) -> str:
    try:
        price = tool("search", query=prompt)["price"]
    except TOOL_FAILURES:
        price = 99
    return f"The flight costs {price} EUR."


def twin(prompt: str) -> str:
    try:
        return f"The flight costs {tool('search', query=prompt)['price']} EUR."
    except TOOL_FAILURES:
        return UNAVAILABLE
