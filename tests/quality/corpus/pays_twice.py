"""Retry without idempotency: a payment whose reply is lost is made again. Its twin sends one key with both."""

import uuid

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool


def _pay(headers: dict[str, str] | None) -> str:
    for _ in range(2):
        try:
            return f"Paid, receipt {tool('pay', headers=headers, order_id='A-17', amount=120)['receipt']}."
        except TOOL_FAILURES:
            continue
    return UNAVAILABLE


def bug(prompt: str) -> str:
    return _pay(None)


def twin(prompt: str) -> str:
    return _pay({"Idempotency-Key": str(uuid.uuid4())})
