"""Ignores `finish_reason: length`: half an answer is given for the whole. Its twin says that it was cut short."""

from corpus_kit import MODEL, UNAVAILABLE, model
from openai import OpenAIError


def _ask(prompt: str) -> tuple[str, str]:
    with model() as client:
        messages = [{"role": "user", "content": f"SUMMARY {prompt}"}]
        reply = client.chat.completions.create(model=MODEL, messages=messages)
    if not reply.choices:
        return "", "stop"
    return reply.choices[0].message.content or "", reply.choices[0].finish_reason or ""


def bug(prompt: str) -> str:
    try:
        return _ask(prompt)[0] or UNAVAILABLE
    except OpenAIError:
        return UNAVAILABLE


def twin(prompt: str) -> str:
    try:
        text, finish = _ask(prompt)
    except OpenAIError:
        return UNAVAILABLE
    return text if text and finish == "stop" else UNAVAILABLE
