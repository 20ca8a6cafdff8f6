"""Every model fault, on every wire, whole and streamed, as the providers' own SDKs show it to their callers.

The SDKs run unchanged against a scripted server on loopback, and the in-process seams hold them as they hold an agent.
So what is asserted is what an agent's author sees: the typed exception, the message, the finish reason, the tool calls;
and how often the SDK tried, because each of its attempts is an exchange of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from flakestorm.boundary import inprocess
from flakestorm.boundary.session import Crossing
from flakestorm.config.model import Chaos, LlmFault
from flakestorm.core.choices import Choices
from flakestorm.core.ledger import Ledger
from flakestorm.core.pipeline import chain
from flakestorm.core.site import Sites
from flakestorm.faults.schedule import Schedule
from flakestorm.wire.classify import classify
from inprocess_support import Watcher
from model_replies import PAY, TOOLS, WORDS, reply_of
from sdk_faces import FACES, Face, Shown, canned
from upstream import Upstream

genai = pytest.importorskip("google.genai", reason="google-genai is not installed; it is in the dev group")
ollama = pytest.importorskip("ollama", reason="ollama is not installed; it is in the dev group")

SDKS = [face.wire for face in FACES]
each_sdk = pytest.mark.parametrize("sdk", SDKS)
each_form = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
STOP = {
    "openai_chat": "stop",
    "openai_responses": "completed",
    "anthropic": "end_turn",
    "gemini": "STOP",
    "ollama": "stop",
}
ASKED = {**STOP, "openai_chat": "tool_calls", "anthropic": "tool_use"}
"""How an answer ends that asks for a tool."""


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def faces(up: Upstream) -> Iterator[dict[str, Face]]:
    """One client of each SDK for all tests: making one takes longer than all that a test does with it."""
    with inprocess.held():
        made = {face.wire: face(up.url) for face in FACES}
        yield made
        for face in made.values():
            face.close()


@dataclass
class Table:
    """One SDK, its upstream, and what happened in the last question."""

    up: Upstream
    faces: dict[str, Face]
    ledger: Ledger
    watcher: Watcher

    def fault(self, mode: str, **settings: object) -> Crossing:
        """A fresh run in which every model call is hit by this fault."""
        self.ledger, self.watcher = Ledger(), Watcher()
        schedule = Schedule.of(Chaos(llm_faults=[LlmFault(mode=mode, **settings)]))  # type: ignore[arg-type]
        stages = [classify(tools=(), sites=Sites()), self.watcher, schedule.stage(Choices(1), self.ledger)]
        return Crossing("r-0001", chain(*stages))

    def ask(
        self, sdk: str, mode: str, *, stream: bool, calls: bool = False, text: str | None = WORDS, **settings: object
    ) -> Shown:
        """What the SDK shows of an answer under this fault."""
        face = self.faces[sdk]
        canned(self.up, face, reply_of(sdk, text, [PAY] if calls else [], stream=stream), stream=stream)
        with self.fault(mode, **settings).active():
            return face.ask(stream=stream)

    def plain(self, sdk: str, *, stream: bool, calls: bool = False) -> Shown:
        """What the SDK shows without any fault."""
        return Shown(WORDS, "", (PAY,) if calls else (), (ASKED if calls else STOP)[sdk])

    @property
    def attempts(self) -> int:
        return len(self.watcher.calls)

    @property
    def fired(self) -> list[str]:
        return [firing.mode for firing in self.ledger.fired]


@pytest.fixture
def table(up: Upstream, faces: dict[str, Face]) -> Table:
    return Table(up, faces, Ledger(), Watcher())


@each_form
@each_sdk
@pytest.mark.parametrize("calls", [False, True], ids=["text", "tool call"])
def test_without_a_fault_the_answer_is_shown_as_it_is(table: Table, sdk: str, stream: bool, calls: bool) -> None:
    shown = table.ask(sdk, "truncated_response", stream=stream, calls=calls, max_tokens=10_000)
    assert shown == table.plain(sdk, stream=stream, calls=calls)
    assert (table.fired, table.attempts) == ([], 1)


# --- the provider fails ---------------------------------------------------------------------------------------------

ERRORS: dict[tuple[str, str], tuple[type[Exception], int]] = {
    ("openai", "rate_limit"): (openai.RateLimitError, 429),
    ("openai", "overloaded"): (openai.InternalServerError, 503),
    ("openai", "server_error"): (openai.InternalServerError, 500),
    ("anthropic", "rate_limit"): (anthropic.RateLimitError, 429),
    ("anthropic", "overloaded"): (anthropic._exceptions.OverloadedError, 529),
    ("anthropic", "server_error"): (anthropic.InternalServerError, 500),
    ("gemini", "rate_limit"): (genai.errors.ClientError, 429),
    ("gemini", "overloaded"): (genai.errors.ServerError, 503),
    ("gemini", "server_error"): (genai.errors.ServerError, 500),
    ("ollama", "rate_limit"): (ollama.ResponseError, 429),
    ("ollama", "overloaded"): (ollama.ResponseError, 503),
    ("ollama", "server_error"): (ollama.ResponseError, 500),
}
TYPES = {"rate_limit": "rate_limit_error", "overloaded": "overloaded_error", "server_error": "api_error"}
CODES = {"rate_limit": "RESOURCE_EXHAUSTED", "overloaded": "UNAVAILABLE", "server_error": "INTERNAL"}


def vendor(sdk: str) -> str:
    return sdk.partition("_")[0]


def status_of(error: Any) -> int:
    return int(getattr(error, "status_code", None) or error.code)


@each_form
@each_sdk
@pytest.mark.parametrize("mode", ["rate_limit", "overloaded", "server_error"])
def test_the_sdk_raises_its_own_exception_after_its_own_retries(
    table: Table, sdk: str, mode: str, stream: bool
) -> None:
    kind, status = ERRORS[vendor(sdk), mode]
    before = table.up.count()
    with pytest.raises(kind) as caught:
        table.ask(sdk, mode, stream=stream, message="so it is", retry_after_ms=1)
    error: Any = caught.value
    assert (type(error), status_of(error)) == (kind, status)
    assert "so it is" in str(error)
    assert table.attempts == len(table.fired) == table.faces[sdk].attempts
    assert table.up.count() == before
    if vendor(sdk) in ("openai", "anthropic"):
        assert error.request_id.startswith("req_")
    if sdk == "anthropic":
        assert error.body["error"]["type"] == TYPES[mode]
    if sdk == "gemini":
        assert error.status == CODES[mode]


MIDWAY = {
    "openai": openai.APIError,
    "anthropic": anthropic.APIStatusError,
    "gemini": genai.errors.ServerError,
    "ollama": ollama.ResponseError,
}


@each_sdk
def test_an_error_in_the_middle_of_a_stream_is_raised_there(table: Table, sdk: str) -> None:
    face, seen = table.faces[sdk], list[Any]()
    canned(table.up, face, reply_of(sdk, stream=True), stream=True)
    with (
        table.fault("overloaded", after_events=4, message="so it is").active(),
        pytest.raises(MIDWAY[vendor(sdk)]) as caught,
    ):
        seen.extend(face.parts())
    assert "so it is" in str(caught.value)
    assert len(seen) == (3 if sdk == "anthropic" else 4)  # its SDK keeps the ping to itself
    assert (table.fired, table.attempts) == (["overloaded"], 1)


TIMEOUTS = {
    "openai": openai.APITimeoutError,
    "anthropic": anthropic.APITimeoutError,
    "gemini": httpx2.TimeoutException,
    "ollama": httpx.TimeoutException,
}


@each_form
@each_sdk
def test_a_timeout_is_the_sdk_s_own_too(table: Table, sdk: str, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    face: Any = table.faces[sdk]
    if face.attempts > 1:  # it would wait between attempts, and nobody tells it for how long
        monkeypatch.setattr(face, "client", face.client.with_options(max_retries=0))
    with pytest.raises(TIMEOUTS[vendor(sdk)]):
        table.ask(sdk, "timeout", stream=stream, delay_ms=1)
    assert (table.fired, table.attempts) == (["timeout"], 1)


# --- the stream suffers -----------------------------------------------------------------------------------------------

BREAKS = {
    "openai": openai.APIConnectionError,
    "anthropic": httpx2.ReadError,
    "gemini": httpx2.ReadError,
    "ollama": httpx.ReadError,
}


@each_sdk
@pytest.mark.parametrize("events", [0, 1, 4])
def test_so_many_events_are_shown_before_the_stream_breaks(table: Table, sdk: str, events: int) -> None:
    face, seen = table.faces[sdk], list[Any]()
    canned(table.up, face, reply_of(sdk, stream=True), stream=True)
    with table.fault("stream_cut", after_events=events).active(), pytest.raises(BREAKS[vendor(sdk)]):
        seen.extend(face.parts())
    assert len(seen) == (events - 1 if sdk == "anthropic" and events > 1 else events)
    assert (table.fired, table.attempts) == (["stream_cut"], 1)


@each_form
@each_sdk
@pytest.mark.parametrize("calls", [False, True], ids=["text", "tool call"])
def test_a_slow_stream_says_the_same(table: Table, sdk: str, stream: bool, calls: bool) -> None:
    shown = table.ask(sdk, "slow_stream", stream=stream, calls=calls, first_token_ms=1, per_chunk_ms=1)
    assert shown == table.plain(sdk, stream=stream, calls=calls)
    assert (table.fired, table.attempts) == (["slow_stream"] if stream else [], 1)


@each_sdk
@pytest.mark.parametrize(("mode", "settings"), [("stream_cut", {}), ("overloaded", {"after_events": 2})])
def test_a_whole_reply_has_no_middle_to_break_in(table: Table, sdk: str, mode: str, settings: dict[str, int]) -> None:
    assert table.ask(sdk, mode, stream=False, **settings) == table.plain(sdk, stream=False)
    assert (table.fired, table.attempts) == ([], 1)


# --- the model says something else ------------------------------------------------------------------------------------

LENGTH = {
    "openai_chat": "length",
    "openai_responses": "max_output_tokens",
    "anthropic": "max_tokens",
    "gemini": "MAX_TOKENS",
    "ollama": "length",
}
FILTERED = {
    "openai_chat": "content_filter",
    "openai_responses": "content_filter",
    "anthropic": "refusal",
    "gemini": "SAFETY",
}


@each_form
@each_sdk
def test_a_truncated_answer_is_a_beginning_and_says_length(table: Table, sdk: str, stream: bool) -> None:
    shown = table.ask(sdk, "truncated_response", stream=stream, max_tokens=6)
    assert 0 < len(shown.text) < len(WORDS)
    assert WORDS.startswith(shown.text)
    assert (replace(shown, text=""), table.fired) == (Shown(finish=LENGTH[sdk]), ["truncated_response"])


@each_form
@each_sdk
def test_an_empty_answer_says_and_asks_nothing(table: Table, sdk: str, stream: bool) -> None:
    assert table.ask(sdk, "empty", stream=stream, calls=True) == Shown(finish=STOP[sdk])
    assert (table.fired, table.attempts) == (["empty"], 1)


@each_form
@each_sdk
def test_garbage_is_text_like_any_other(table: Table, sdk: str, stream: bool) -> None:
    shown = table.ask(sdk, "garbage", stream=stream, calls=True)
    assert [len(word) for word in shown.text.split()] == [len(word) for word in WORDS.split()]
    assert replace(shown, text=WORDS) == table.plain(sdk, stream=stream, calls=True)
    assert shown.text != WORDS
    assert table.fired == ["garbage"]


@each_form
@each_sdk
@pytest.mark.parametrize("text", [WORDS, None], ids=["text", "tool call only"])
def test_a_refusal_is_shown_where_the_sdk_has_refusals(table: Table, sdk: str, stream: bool, text: str | None) -> None:
    shown = table.ask(sdk, "refusal", stream=stream, calls=True, text=text, message="I would rather not.")
    finish = "refusal" if sdk == "anthropic" else STOP[sdk]
    apart = vendor(sdk) == "openai"
    assert shown == (
        Shown("", "I would rather not.", (), finish) if apart else Shown("I would rather not.", "", (), finish)
    )
    assert (table.fired, table.attempts) == (["refusal"], 1)


@each_form
@each_sdk
@pytest.mark.parametrize("calls", [False, True], ids=["text", "tool call"])
def test_a_filtered_answer_ends_in_the_provider_s_word_for_it(
    table: Table, sdk: str, stream: bool, calls: bool
) -> None:
    shown = table.ask(sdk, "content_filter", stream=stream, calls=calls)
    if sdk == "ollama":  # it has no filter
        assert (shown, table.fired) == (table.plain(sdk, stream=stream, calls=calls), [])
    else:
        assert (shown, table.fired) == (Shown(finish=FILTERED[sdk]), ["content_filter"])


@each_form
@each_sdk
def test_a_filtered_prompt_is_the_sdk_s_bad_request(table: Table, sdk: str, stream: bool) -> None:
    before = table.up.count()
    kinds = {"openai": openai.BadRequestError, "anthropic": anthropic.BadRequestError}
    if vendor(sdk) in kinds:
        with pytest.raises(kinds[vendor(sdk)], match="not that"):
            table.ask(sdk, "content_filter", stream=stream, form="prompt", message="not that")
    else:
        shown = table.ask(sdk, "content_filter", stream=stream, form="prompt")
        expected = Shown(finish="PROHIBITED_CONTENT") if sdk == "gemini" else table.plain(sdk, stream=stream)
        assert shown == expected
    hit = sdk != "ollama"
    assert (table.fired, table.up.count() - before, table.attempts) == (["content_filter"] * hit, 1 - hit, 1)


@each_form
@pytest.mark.parametrize("sdk", ["openai_chat", "openai_responses"])
def test_azure_filters_prompts_in_its_own_words(table: Table, sdk: str, stream: bool) -> None:
    url = f"{table.up.url}/openai/deployments/m"
    client = openai.AzureOpenAI(base_url=url, api_key="k", api_version="2025-01-01")
    prompt: Any = {"messages": [{"role": "user", "content": "hi"}]} if sdk == "openai_chat" else {"input": "hi"}
    ask: Any = client.chat.completions.create if sdk == "openai_chat" else client.responses.create
    with client, table.fault("content_filter").active(), pytest.raises(openai.BadRequestError) as caught:
        ask(model="m", stream=stream, **prompt)
    body: Any = caught.value.body
    assert (caught.value.code, body["innererror"]["code"]) == ("content_filter", "ResponsibleAIPolicyViolation")
    assert (table.fired, table.attempts) == (["content_filter"], 1)


ORDER = '{"order_id": 7, "unit_price": 2.5}'
NO = "I'm sorry, but I can't help with that."
DRIFTS = {
    "json_field_rename": ORDER,
    "verbosity_shift": WORDS,
    "format_change": WORDS,
    "refusal_rephrase": NO,
    "tone_shift": WORDS,
}


@each_form
@each_sdk
@pytest.mark.parametrize(("drift", "text"), DRIFTS.items(), ids=DRIFTS)
def test_each_severity_of_a_drift_is_shown_as_another_text(
    table: Table, sdk: str, stream: bool, drift: str, text: str
) -> None:
    shown = []
    for severity in ("subtle", "moderate", "significant"):
        said = table.ask(
            sdk, "response_drift", stream=stream, calls=True, text=text, drift_type=drift, severity=severity
        )
        assert replace(said, text=WORDS) == table.plain(sdk, stream=stream, calls=True)
        assert (table.fired, table.attempts) == (["response_drift"], 1)
        shown.append(said.text)
    assert len({text, *shown}) == 4


# --- the model asks for what cannot be done ---------------------------------------------------------------------------


@each_form
@each_sdk
def test_an_unknown_tool_is_asked_for_by_name(table: Table, sdk: str, stream: bool) -> None:
    shown = table.ask(sdk, "bad_tool_call", stream=stream, calls=True, form="unknown_tool")
    [(name, arguments)] = shown.calls
    assert name not in TOOLS
    assert arguments == PAY[1]
    assert replace(shown, calls=(PAY,)) == table.plain(sdk, stream=stream, calls=True)
    assert table.fired == ["bad_tool_call"]


@each_form
@each_sdk
def test_a_required_argument_is_missing(table: Table, sdk: str, stream: bool) -> None:
    shown = table.ask(sdk, "bad_tool_call", stream=stream, calls=True, form="missing_argument")
    [(name, arguments)] = shown.calls
    assert (name, len(arguments)) == ("pay", 1)
    assert arguments.items() <= PAY[1].items()
    assert replace(shown, calls=(PAY,)) == table.plain(sdk, stream=stream, calls=True)
    assert table.fired == ["bad_tool_call"]


@each_form
@each_sdk
def test_arguments_that_are_no_json_are_shown_as_the_provider_would_send_them(
    table: Table, sdk: str, stream: bool
) -> None:
    shown = table.ask(sdk, "bad_tool_call", stream=stream, calls=True, form="invalid_json")
    plain = table.plain(sdk, stream=stream, calls=True)
    assert table.fired == ["bad_tool_call"]
    if vendor(sdk) == "openai":
        [(name, arguments)] = shown.calls
        assert name == "pay"
        assert isinstance(arguments, str)
        with pytest.raises(ValueError):
            json.loads(arguments)
        assert replace(shown, calls=(PAY,)) == plain
    elif sdk == "anthropic":  # its SDK reads as much of them as it can, and the API itself does so in a whole reply
        [(name, arguments)] = shown.calls
        assert (name, arguments) == ("pay", {"eur": 120})
        assert replace(shown, calls=(PAY,)) == plain
    elif sdk == "gemini":
        assert shown == Shown(WORDS, finish="MALFORMED_FUNCTION_CALL")
    else:
        assert shown.text.startswith(WORDS + '{"name": "pay", "arguments": {"eur":120')
        assert (shown.calls, shown.finish) == ((), STOP[sdk])
