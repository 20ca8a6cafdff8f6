"""A stream that breaks off: what came until then is given for the answer. Its twin says that it was cut short."""

from corpus_kit import MODEL, UNAVAILABLE, model
from httpx import TransportError
from openai import OpenAIError


def _answer(prompt: str, *, whole: bool) -> str:
    words, finish = list[str](), None
    try:
        with model() as client:
            messages = [{"role": "user", "content": f"SUMMARY {prompt}"}]
            for event in client.chat.completions.create(model=MODEL, messages=messages, stream=True):
                for choice in event.choices:
                    words.append(choice.delta.content or "")
                    finish = choice.finish_reason or finish
    except (OpenAIError, TransportError):
        if whole or not words:
            return UNAVAILABLE
    return UNAVAILABLE if finish == "length" or not any(words) else "".join(words)


def bug(prompt: str) -> str:
    return _answer(prompt, whole=False)


def twin(prompt: str) -> str:
    return _answer(prompt, whole=True)
