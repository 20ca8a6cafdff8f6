"""A loop on 429: while the model says that there are too many requests, the agent asks again (bounded here at 25). Its
twin asks three times. Only a rate limit that lasts shows it."""

from corpus_kit import MODEL, UNAVAILABLE, model
from openai import OpenAIError, RateLimitError


def _answer(prompt: str, attempts: int) -> str:
    with model() as client:
        for _ in range(attempts):
            try:
                reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": prompt}])
                return reply.choices[0].message.content or UNAVAILABLE
            except RateLimitError:
                continue
            except OpenAIError:
                return UNAVAILABLE
    return UNAVAILABLE


def bug(prompt: str) -> str:
    return _answer(prompt, 25)


def twin(prompt: str) -> str:
    return _answer(prompt, 3)
