"""One small client for the configured model, whoever serves it.

It speaks four protocols, writes the request in each, and reads the reply with the wire that reads the agent's own
calls. Its calls are made outside any run, so they never cross an agent's boundary and are on no tape. Nothing is
believed of a reply: it is bounded, and one without text is a failure.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from flakestorm.config.model import Model
from flakestorm.errors import ConfigError, ModelFailed
from flakestorm.wire.limits import told_wait_ms
from flakestorm.wire.protocols import wire_of

__all__ = ["ATTEMPTS", "LONGEST_WAIT_S", "ModelClient"]

ATTEMPTS = 4
"""How often a question is sent in all, where the provider is busy or the connection breaks."""

LONGEST_WAIT_S = 30.0
"""What a provider may ask us to wait; one that asks for more has not answered."""

_BACKOFF_S = 0.5
_MAX_BYTES = 4 * 2**20
_MAX_TOKENS = 1024
_BUSY = {408, 409, 429, 500, 502, 503, 504, 529}


@dataclass(frozen=True, slots=True)
class _Provider:
    """How one provider is reached: its protocol, where, and by which key."""

    wire: str
    base: str
    keys: tuple[str, ...]
    path: Callable[[str], str]
    headers: Callable[[str], Mapping[str, str]]


def _bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


_PROVIDERS: dict[str, _Provider] = {
    "ollama": _Provider("ollama", Model.DEFAULT_OLLAMA, (), lambda _: "/api/chat", _bearer),
    "openai": _Provider(
        "openai_chat", "https://api.openai.com/v1", ("OPENAI_API_KEY",), lambda _: "/chat/completions", _bearer
    ),
    "anthropic": _Provider(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        lambda _: "/v1/messages",
        lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    ),
    "google": _Provider(
        "gemini",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        lambda name: f"/v1beta/models/{quote(name, safe='')}:generateContent",
        lambda key: {"x-goog-api-key": key},
    ),
}


class ModelClient:
    """Asks the model of a config. Close it when done.

    Args:
        model: the config's block.
        timeout_s: how long one answer may take.
        sleep: waits between attempts.

    Raises:
        ConfigError: there is no model to ask (`provider: none`).
    """

    def __init__(
        self, model: Model, *, timeout_s: float = 60.0, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        if model.provider == "none":
            raise ConfigError("there is no model to ask: it says none", key="model.provider")
        self._model, self._provider, self._sleep = model, _PROVIDERS[model.provider], sleep
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None
        key = model.api_key or next(filter(None, map(os.environ.get, self._provider.keys)), "")
        self._headers = {"content-type": "application/json", **self._provider.headers(key)}
        self._url = _joined(model.base_url or self._provider.base, self._provider.path(model.name))

    async def ask(self, prompt: str, *, system: str = "", temperature: float | None = None) -> str:
        """The model's answer in text.

        A provider that is busy (429, 5xx) or breaks the connection is asked again, after the wait it wants.

        Args:
            prompt: what the user says.
            system: instructions.
            temperature: of sampling; the config's where not given.

        Raises:
            ModelFailed: no answer came in time, the provider refused, or its reply holds no text.
        """
        heat = self._model.temperature if temperature is None else temperature
        asked = _request(self._model.provider, self._model.name, prompt, system, heat)
        return self._text(await self.send(self._url, asked))

    async def send(self, url: str, asked: Mapping[str, Any]) -> bytes:
        """The reply to this JSON body at a URL of the provider's; patient as `ask`.

        Raises:
            ModelFailed: none came in time, or the provider refused.
        """
        body = orjson.dumps(asked)
        problem, wait_s = "", 0.0
        for attempt in range(ATTEMPTS):
            if attempt:
                await self._sleep(wait_s)
            try:
                status, headers, reply = await self._post(url, body)
            except TimeoutError:
                problem = f"nothing came within {self._timeout.total:g} s"
                break
            except (aiohttp.ClientError, OSError) as error:
                problem, wait_s = str(error) or type(error).__name__, _BACKOFF_S * 2**attempt
                continue
            if status < 400:
                return reply
            problem = f"status {status}: {self._refusal(reply)}"
            asked_s = _wait_s(headers, reply)
            if status not in _BUSY or (asked_s or 0.0) > LONGEST_WAIT_S:
                break
            wait_s = _BACKOFF_S * 2**attempt if asked_s is None else asked_s
        raise ModelFailed(f"the model {self._model.name!r} of {self._model.provider} gave no answer: {problem}")

    def url(self, path: str) -> str:
        """Where the provider has this path."""
        return _joined(self._model.base_url or self._provider.base, path)

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(self, url: str, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout, trust_env=True)
        async with self._session.post(url, data=body, headers=self._headers, allow_redirects=False) as reply:
            data = bytearray()
            async for chunk in reply.content.iter_chunked(64 * 1024):
                data += chunk
                if len(data) > _MAX_BYTES:
                    raise aiohttp.ClientPayloadError(f"the reply is longer than {_MAX_BYTES // 2**20} MB")
            return reply.status, reply.headers, bytes(data)

    def _text(self, reply: bytes) -> str:
        wire = wire_of(self._provider.wire)
        said = None if wire is None else wire.said(reply, stream=False)
        if said is None or said.error or not said.text.strip():
            why = (said.error if said else "") or f"its reply holds no text: {_shown(reply)}"
            raise ModelFailed(f"the model {self._model.name!r} of {self._model.provider} gave no answer: {why}")
        return said.text

    def _refusal(self, reply: bytes) -> str:
        wire = wire_of(self._provider.wire)
        said = None if wire is None else wire.said(reply, stream=False)
        return (said.error if said else None) or _shown(reply)


def _request(provider: str, name: str, prompt: str, system: str, temperature: float) -> dict[str, Any]:
    turns = [{"role": "user", "content": prompt}]
    first = [{"role": "system", "content": system}] if system else []
    match provider:
        case "ollama":
            options = {"temperature": temperature}
            return {"model": name, "messages": [*first, *turns], "stream": False, "options": options}
        case "openai":
            return {"model": name, "messages": [*first, *turns], "temperature": temperature}
        case "anthropic":
            more = {"system": system} if system else {}
            heat = min(temperature, 1.0)  # its range ends there
            return {"model": name, "messages": turns, "max_tokens": _MAX_TOKENS, "temperature": heat, **more}
        case _:
            told = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
            contents = [{"role": "user", "parts": [{"text": prompt}]}]
            return {"contents": contents, "generationConfig": {"temperature": temperature}, **told}


def _joined(base: str, path: str) -> str:
    """The path behind the base URL; a version that both name is there once."""
    base = base.rstrip("/")
    for version in ("/v1", "/v1beta"):
        if base.endswith(version) and path.startswith(f"{version}/"):
            return base + path.removeprefix(version)
    return base + path


def _wait_s(headers: Mapping[str, str], reply: bytes) -> float | None:
    """What the provider asks us to wait, in seconds; None where it says nothing that can be read."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) / unit)
        except ValueError:
            continue
    told_ms = told_wait_ms((), reply)  # unpacked already
    return None if told_ms is None else told_ms / 1000


def _shown(reply: bytes) -> str:
    return " ".join(reply[:300].decode("utf-8", "replace").split()) or "an empty body"
