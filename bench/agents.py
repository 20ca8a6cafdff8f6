"""The calls an agent makes with the official SDKs; also run in the environments of peers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["SDKS"]

PROMPT = "Book me the earliest flight to Oslo tomorrow, please."


class Anthropic:
    """`anthropic`, blocking."""

    @staticmethod
    def client(url: str) -> Any:
        import anthropic

        return anthropic.Anthropic(api_key="sk-none", base_url=url)

    @staticmethod
    def ask(client: Any, *, stream: bool = False) -> Any:
        return client.messages.create(
            model="claude-sonnet-4-5",
            max_tokens=100,
            messages=[{"role": "user", "content": PROMPT}],
            stream=stream,
        )

    @classmethod
    def first_token_s(cls, client: Any) -> float:
        return _first_s(lambda: cls.ask(client, stream=True), lambda event: event.type == "content_block_delta")


class OpenAI:
    """`openai`, blocking."""

    @staticmethod
    def client(url: str) -> Any:
        import openai

        return openai.OpenAI(api_key="sk-none", base_url=f"{url}/v1")

    @staticmethod
    def ask(client: Any, *, stream: bool = False) -> Any:
        messages = [{"role": "user", "content": PROMPT}]
        return client.chat.completions.create(model="gpt-4o", messages=messages, stream=stream)

    @classmethod
    def first_token_s(cls, client: Any) -> float:
        return _first_s(lambda: cls.ask(client, stream=True), lambda event: bool(event.choices[0].delta.content))


def _first_s(ask: Callable[[], Any], is_token: Callable[[Any], bool]) -> float:
    """Wall seconds until the first token; the stream is then read to its end."""
    start, first_s = time.perf_counter(), 0.0
    for event in ask():
        if not first_s and is_token(event):
            first_s = time.perf_counter() - start
    return first_s


SDKS: dict[str, Any] = {"anthropic": Anthropic, "openai": OpenAI}
