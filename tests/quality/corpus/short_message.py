"""A fault and an input: answers are messages of 100 characters, and bad news stands behind the question, so a long
question pushes it off the end. Its twin tells the news first."""

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool

LENGTH = 100


def _news() -> str:
    try:
        return f"It costs {tool('search')['price']} EUR."
    except TOOL_FAILURES:
        return UNAVAILABLE


def bug(prompt: str) -> str:
    news = _news()
    return (f"Re: {prompt} {news}" if news == UNAVAILABLE else f"{news} Re: {prompt}")[:LENGTH]


def twin(prompt: str) -> str:
    return f"{_news()} Re: {prompt}"[:LENGTH]
