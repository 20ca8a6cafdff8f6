"""Trusts injected text: what a tool says is handed on as it stands. Its twin takes the one number it asked for."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool


def bug(prompt: str) -> str:
    try:
        return ". ".join(f"{key}: {value}" for key, value in tool("hotel", query=prompt).items())
    except TOOL_FAILURES:
        return UNAVAILABLE


def twin(prompt: str) -> str:
    try:
        return f"The hotel costs {int(tool('hotel', query=prompt)['price'])} EUR."
    except (*TOOL_FAILURES, TypeError):
        return UNAVAILABLE
