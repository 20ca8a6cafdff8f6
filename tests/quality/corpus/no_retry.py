"""No retry: one refused search, and the agent crashes. Its twin tries once more and then says that it could not."""

from corpus_kit import UNAVAILABLE, tool, twice


def bug(prompt: str) -> str:
    return f"The flight costs {tool('search', query=prompt)['price']} EUR."


def twin(prompt: str) -> str:
    found = twice("search", query=prompt)
    return UNAVAILABLE if found is None or "price" not in found else f"The flight costs {found['price']} EUR."
