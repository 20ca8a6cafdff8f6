"""The client against scripted providers on loopback: what it sends, what it believes, how long it is patient."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from flakestorm.boundary.hub import Hub
from flakestorm.config.model import Model
from flakestorm.core.call import Call
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain
from flakestorm.errors import Misuse, ModelFailed
from flakestorm.models.client import ATTEMPTS, ModelClient
from flakestorm.tape.writer import Recorder
from flakestorm.wire.protocols import wire_of
from upstream import HANG_UP, Canned, Gate, Upstream, anthropic_messages, document, openai_chat, text

GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Fine."}]}, "finishReason": "STOP"}]}
OLLAMA = {"model": "m", "message": {"role": "assistant", "content": "Fine."}, "done": True, "done_reason": "stop"}
REPLIES: dict[str, Any] = {
    "ollama": ("/api/chat", document(OLLAMA)),
    "openai": ("/v1/chat/completions", openai_chat("Fine.")),
    "anthropic": ("/v1/messages", anthropic_messages("Fine.")),
    "google": ("/v1beta/models/m:generateContent", document(GEMINI)),
}
WIRES = {"ollama": "ollama", "openai": "openai_chat", "anthropic": "anthropic", "google": "gemini"}
BASES = {"ollama": "", "openai": "/v1", "anthropic": "", "google": ""}


class Waits:
    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def client(up: Upstream, provider: str = "openai", *, waits: Waits | None = None, **more: Any) -> ModelClient:
    base = more.pop("base_url", up.url + BASES[provider])
    model = Model(provider=provider, name="m", base_url=base, api_key=more.pop("key", "k-123"))  # type: ignore[arg-type]
    return ModelClient(model, sleep=waits or Waits(), **more)


@pytest.fixture
async def up() -> AsyncIterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.mark.parametrize("provider", REPLIES)
async def test_each_provider_is_asked_in_its_own_words(up: Upstream, provider: str) -> None:
    path, reply = REPLIES[provider]
    up.reply(path, reply)
    asker = client(up, provider)
    try:
        assert await asker.ask("Is it fine?", system="Be brief.", temperature=0.0) == "Fine."
    finally:
        await asker.close()
    (request,) = up.requests
    wire = wire_of(WIRES[provider])
    assert wire is not None
    assert wire.recognises(Call("POST", up.url + path, (), request.body))
    asked = wire.asked(request.body)
    assert [(turn.role, turn.text) for turn in asked.turns] == [("system", "Be brief."), ("user", "Is it fine?")]
    assert b'"temperature":0.0' in request.body
    sent = {name.lower(): value for name, value in request.headers.items()}
    keys = {"anthropic": "x-api-key", "google": "x-goog-api-key"}
    assert sent[keys.get(provider, "authorization")].endswith("k-123")


async def test_a_version_in_the_base_url_is_not_there_twice(up: Upstream) -> None:
    up.reply("/v1/messages", anthropic_messages("Fine."))
    asker = client(up, "anthropic", base_url=f"{up.url}/v1/")
    assert await asker.ask("?") == "Fine."
    await asker.close()


async def test_the_key_comes_from_the_environment_where_the_config_has_none(
    up: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    asker = client(up, key=None)
    await asker.ask("?")
    await asker.close()
    assert {k.lower(): v for k, v in up.requests[0].headers.items()}["authorization"] == "Bearer from-env"


@pytest.mark.parametrize(
    ("headers", "wait"), [({"retry-after": "3"}, 3.0), ({"retry-after-ms": "250", "retry-after": "9"}, 0.25), ({}, 0.5)]
)
async def test_a_busy_provider_is_asked_again_after_the_wait_it_wants(
    up: Upstream, headers: dict[str, str], wait: float
) -> None:
    waits = Waits()
    up.reply("/v1/chat/completions", document({"error": {}}, status=429, headers=headers), openai_chat("Fine."))
    asker = client(up, waits=waits)
    assert await asker.ask("?") == "Fine."
    await asker.close()
    assert waits.seconds == [wait]


async def test_google_says_in_the_body_how_long_to_wait(up: Upstream) -> None:
    waits = Waits()
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
    busy = document({"error": {"code": 429, "details": [info]}}, status=429)
    up.reply("/v1/chat/completions", busy, openai_chat("Fine."))
    asker = client(up, waits=waits)
    assert await asker.ask("?") == "Fine."
    await asker.close()
    assert waits.seconds == [7.0]


@pytest.mark.parametrize(
    ("canned", "attempts", "reason"),
    [
        (document({"error": {"message": "slow down"}}, status=429), ATTEMPTS, "slow down"),
        (document({}, status=503), ATTEMPTS, "status 503"),
        (document({"error": {"message": "bad key"}}, status=401), 1, "bad key"),
        (document({}, status=429, headers={"retry-after": "3600"}), 1, "status 429"),  # too long to wait for
        (Canned((b"{", HANG_UP), chunked=True), ATTEMPTS, ""),
        (text("<html>login</html>"), 1, "no text: <html>login"),
        (document({"choices": []}), 1, "no text"),
        (openai_chat(""), 1, "no text"),
        (text("x" * 5_000_000), ATTEMPTS, "longer than 4 MB"),
        (text("", status=302), 1, "no text"),
    ],
)
async def test_no_answer_is_a_failure_that_says_why(up: Upstream, canned: Canned, attempts: int, reason: str) -> None:
    up.reply("/v1/chat/completions", canned)
    asker = client(up)
    with pytest.raises(ModelFailed, match="the model 'm' of openai gave no answer") as caught:
        await asker.ask("?")
    await asker.close()
    assert reason in str(caught.value)
    assert up.count() == attempts
    assert "k-123" not in str(caught.value)


async def test_an_answer_that_does_not_come_is_not_waited_for(up: Upstream) -> None:
    gate = Gate()
    up.reply("/v1/chat/completions", Canned((gate, b"{}"), chunked=True))
    asker = client(up, timeout_s=0.2)
    with pytest.raises(ModelFailed, match=r"nothing came within 0\.2 s"):
        await asker.ask("?")
    gate.open()
    await asker.close()
    assert up.count() == 1


async def test_its_calls_are_on_no_tape(up: Upstream) -> None:
    """Even in a process whose boundary is held: nothing crosses outside a run."""
    recorder = Recorder(None, clock=lambda: 0.0, ledger=Ledger(), header={"run": "r-1"})
    hub = Hub()
    line = hub.line("r-1", chain(recorder.outer, recorder.inner))
    with line.active():
        pass
    asker = client(up)
    await asker.ask("?")
    await asker.close()
    await hub.close()
    assert line.calls == 0
    assert recorder.exchanges == []


def test_no_model_cannot_be_asked() -> None:
    with pytest.raises(Misuse, match=r"^model\.provider: there is no model to ask"):
        ModelClient(Model(provider="none"))
