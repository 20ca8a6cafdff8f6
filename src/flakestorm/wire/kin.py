"""Providers that speak OpenAI's protocol and are not OpenAI: what is known to be otherwise there.

They are told by the host. What nobody has written down of them is spelled as OpenAI spells it, whose clients they are
made for. A request that is over its rate gets these bodies, as they were seen in the wild::

    Azure     {"error": {"code": "429", "message": "Requests to the ... Operation under Azure OpenAI API version ..."}}
    Mistral   {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "code": "1300", ...}
    Groq      {"error": {"message": "Rate limit reached for model `...` in organization ...", "type": "requests", ...}}
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from flakestorm.wire.base import Failure
from flakestorm.wire.shape import Doc

__all__ = ["has_refusals", "is_azure", "rate_limited"]

_AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_PLAIN_HOSTS = (
    "cerebras.ai",
    "cohere.com",
    "deepseek.com",
    "fireworks.ai",
    "googleapis.com",
    "groq.com",
    "mistral.ai",
    "perplexity.ai",
    "together.xyz",
)
"""Whose messages have a content and no `refusal`; their own clients would not show one."""


def is_azure(url: str) -> bool:
    """Whether this is the address of OpenAI's models at Azure, which has errors of its own."""
    try:
        parts = urlsplit(url)
    except ValueError:  # not a URL that anybody can reach
        return False
    return (parts.hostname or "").endswith(_AZURE_HOSTS) or "/openai/deployments/" in parts.path


def has_refusals(url: str) -> bool:
    """Whether a message from this address has a place for refusals, beside its content."""
    return not _at(url, *_PLAIN_HOSTS)


def rate_limited(failure: Failure, *, model: str, wait: str, url: str) -> Doc | None:
    """The body of a 429 at this address; None where it is OpenAI's own.

    Args:
        failure: its message and wait take the place of the provider's own.
        model: that was asked.
        wait: how long to wait, as OpenAI writes durations.
        url: that was asked.
    """
    if is_azure(url):
        return {"error": {"code": str(failure.status or 429), "message": failure.message or _azure_words(failure, url)}}
    if _at(url, "mistral.ai"):
        status, message = failure.status or 429, failure.message or "Rate limit exceeded"
        said = {"object": "error", "message": message, "type": "rate_limited", "param": None, "code": "1300"}
        return {**said, "raw_status_code": status}
    if _at(url, "groq.com"):
        message = (
            f"Rate limit reached for model `{model}` in organization `org_01` on requests per minute (RPM): Limit 30, "
            f"Used 30, Requested 1. Please try again in {wait}. Visit https://console.groq.com/docs/rate-limits for "
            "more information."
        )
        return {"error": {"message": failure.message or message, "type": "requests", "code": "rate_limit_exceeded"}}
    return None


def _azure_words(failure: Failure, url: str) -> str:
    parts = urlsplit(url)
    version = parse_qs(parts.query).get("api-version", ["v1"])[0]
    operation = "Embeddings_Create" if parts.path.endswith("/embeddings") else "ChatCompletions_Create"
    seconds = -(-(failure.retry_after_ms or 0) // 1000)
    return (
        f"Requests to the {operation} Operation under Azure OpenAI API version {version} have exceeded call rate limit "
        f"of your current OpenAI S0 pricing tier. Please retry after {seconds} second{'' if seconds == 1 else 's'}. "
        "Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit."
    )


def _at(url: str, *hosts: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return any(host == each or host.endswith(f".{each}") for each in hosts)
