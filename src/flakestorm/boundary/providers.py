"""The providers' base-URL variables, as data: how an agent in any language is told to call the gateway.

A provider's *origin* (scheme and authority) is replaced by a place on the gateway, and the path of the base URL is
kept as it is: `https://api.openai.com/v1` becomes `http://127.0.0.1:PORT/r/TOKEN/p/openai/v1`. So nothing has to know
whether a path includes `/v1`, and clients that look for that ending still find it.

What the variable said before names the real upstream: first in the agent's own environment, else in the caller's; only
then the provider's public URL. A variable that an agent reads from a `.env` file of its own is not visible here, so
such a file must be given in `agent.env` when it names another upstream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from flakestorm.core.record import Record
from flakestorm.core.regex import later
from flakestorm.errors import Misuse

__all__ = ["PROVIDERS", "Provider", "Upstreams", "variables"]

Upstreams = dict[str, str]
"""Provider name to origin, e.g. `{"openai": "https://api.openai.com"}`."""


class Provider(Record, frozen=True):
    """One provider.

    Args:
        name: as it appears in the gateway's paths.
        variables: environment variables its clients read, the current one first; all of them name the same upstream.
        public: the base URL its official clients use by default, with the path the variable is expected to have.
        always: whether to set the variables also where they were not set before. False where clients disagree about
            the path the variable holds, or where there is no default to fall back on: setting one would break the
            agent; what it calls instead is still seen by the shim or the proxy.
    """

    name: str
    variables: tuple[str, ...]
    public: str = ""
    always: bool = True


PROVIDERS: tuple[Provider, ...] = (
    Provider("openai", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "https://api.openai.com/v1"),
    Provider("anthropic", ("ANTHROPIC_BASE_URL",), "https://api.anthropic.com"),
    Provider("gemini", ("GOOGLE_GEMINI_BASE_URL",), "https://generativelanguage.googleapis.com"),
    Provider("ollama", ("OLLAMA_HOST",), "http://127.0.0.1:11434"),
    Provider("cohere", ("CO_API_URL",), "https://api.cohere.com"),
    Provider("together", ("TOGETHER_BASE_URL",), "https://api.together.xyz/v1"),
    Provider("azure", ("AZURE_OPENAI_ENDPOINT",), always=False),
    Provider("vertex", ("GOOGLE_VERTEX_BASE_URL",), always=False),
    Provider("bedrock", ("ANTHROPIC_BEDROCK_BASE_URL",), always=False),
    Provider("groq", ("GROQ_BASE_URL", "GROQ_API_BASE"), always=False),
    Provider("mistral", ("MISTRAL_BASE_URL", "MISTRAL_API_BASE"), always=False),
    Provider("deepseek", ("DEEPSEEK_BASE_URL", "DEEPSEEK_API_BASE"), always=False),
    Provider("openrouter", ("OPENROUTER_BASE_URL", "OPENROUTER_API_BASE"), always=False),
    Provider("fireworks", ("FIREWORKS_BASE_URL", "FIREWORKS_API_BASE"), always=False),
    Provider("cerebras", ("CEREBRAS_BASE_URL",), always=False),
    Provider("perplexity", ("PERPLEXITY_BASE_URL",), always=False),
    Provider("xai", ("XAI_BASE_URL", "XAI_API_BASE"), always=False),
    Provider("nvidia", ("NVIDIA_BASE_URL",), always=False),
    Provider("huggingface", ("HF_INFERENCE_ENDPOINT",), always=False),
    Provider("litellm", ("LITELLM_BASE_URL", "LITELLM_PROXY_API_BASE"), always=False),
    Provider("ollama-url", ("OLLAMA_BASE_URL",), always=False),
)


class _Base(Record, frozen=True):
    """A base URL, taken apart: what is replaced, and what is kept."""

    origin: str
    userinfo: str
    rest: str

    def at(self, place: str) -> str:
        """The same base URL with its origin at this place on the gateway, user and password still in front."""
        scheme, _, address = place.partition("://")
        return f"{scheme}://{self.userinfo}{address}{self.rest}"


def variables(env: Mapping[str, str], caller: Mapping[str, str], place: str) -> tuple[dict[str, str], Upstreams]:
    """What to set in an agent's environment, and where each provider's calls really go.

    Args:
        env: variables configured for the agent.
        caller: the caller's own environment.
        place: URL on the gateway under which the providers are found, without a closing slash.

    Returns:
        The variables to set, and the origin of every provider among them.

    Raises:
        Misuse: a variable holds something that is no http(s) URL; the message names it and what it says.
    """
    given: dict[str, str] = {}
    upstreams: Upstreams = {}
    for provider in PROVIDERS:
        before = [(name, text) for name in provider.variables if (text := env.get(name, caller.get(name, "")).strip())]
        if not before and not provider.always:
            continue
        origins: dict[str, str] = {}
        fallback = _base(*before[0]) if before else _base(provider.variables[0], provider.public)
        said = dict(before)
        for name in provider.variables if provider.always else said:
            base = _base(name, said[name]) if name in said else fallback
            # Two variables of one provider may name two upstreams; each origin then has a place of its own.
            nth = origins.setdefault(base.origin, provider.name if not origins else f"{provider.name}{len(origins)}")
            given[name] = base.at(f"{place}/{nth}")
            upstreams[nth] = base.origin
    return given, upstreams


_SCHEME = later(r"https?://", re.IGNORECASE)


def _base(variable: str, text: str) -> _Base:
    if variable == "OLLAMA_HOST":
        text = _ollama(text)
    try:
        parts = urlsplit(text)
        usable = bool(_SCHEME.match(text) and parts.hostname and parts.port != 0)  # a bad port raises ValueError
    except ValueError:
        usable = False
    if not usable:
        raise Misuse(
            f"{variable} is {text!r}, which is no http:// or https:// URL, so its calls cannot be led through the "
            f"gateway; correct it in agent.env or in the environment, or unset it"
        )
    userinfo, at, authority = parts.netloc.rpartition("@")
    origin = f"{parts.scheme.lower()}://{authority}"
    rest = text[text.index("://") + 3 + len(parts.netloc) :]
    return _Base(origin, userinfo + at, rest)


def _ollama(text: str) -> str:
    """`OLLAMA_HOST` may be a bare host, a port or a bind address; this is the URL its clients make of it."""
    if not _SCHEME.match(text):
        authority, slash, path = text.partition("/")
        host, colon, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
        if not colon:
            host, port = authority, "11434"
        text = f"http://{host or '127.0.0.1'}:{port or '11434'}{slash}{path}"
    return re.sub(r"^(https?://)(?:0\.0\.0\.0|\[::\])(?=[:/]|$)", r"\g<1>127.0.0.1", text, flags=re.IGNORECASE)
