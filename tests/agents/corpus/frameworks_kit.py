"""What the corpus's agents made with frameworks share. Their clients do not try again by themselves."""

from __future__ import annotations

import httpx
from corpus_kit import PATIENCE_S, world
from openai import AsyncOpenAI

__all__ = ["AT_ONCE", "quick", "quick_model", "quick_sync"]

AT_ONCE = "AT ONCE: use all of your tools in one turn."
"""The corpus's model does as it is told."""


def quick() -> httpx.AsyncClient:
    """A client for loopback, which needs no certificates: reading them would take longer than all the rest."""
    return httpx.AsyncClient(verify=False, timeout=PATIENCE_S)


def quick_sync() -> httpx.Client:
    """The same, blocking."""
    return httpx.Client(verify=False, timeout=PATIENCE_S)


def quick_model() -> AsyncOpenAI:
    """OpenAI's client over that."""
    return AsyncOpenAI(base_url=f"{world()}/v1", api_key="of-nobody", max_retries=0, http_client=quick())
