"""The configured model writes, on each of the four wires; and what becomes of one that does not."""

import json
from typing import Any

import pytest

from flakestorm.api.loops import in_a_loop
from flakestorm.api.writing import FAILURES, written
from flakestorm.config.model import Config, Model
from flakestorm.models.client import ModelClient
from flakestorm.mutations.generate import Recipe
from upstream import HANG_UP, Gate, Upstream, anthropic_messages, document, openai_chat, text

TEXTS = [f"Kindly see to a flight to Oslo, {n}" for n in range(4)]
SAID = json.dumps(TEXTS)
REPLIES: dict[str, Any] = {
    "ollama": ("", "/api/chat",
               document({"model": "m", "message": {"role": "assistant", "content": SAID}, "done": True})),
    "openai": ("/v1", "/v1/chat/completions", openai_chat(SAID)),
    "anthropic": ("", "/v1/messages", anthropic_messages(SAID)),
    "google": ("", "/v1beta/models/m:generateContent",
               document({"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}}]})),
}  # fmt: skip
PATH = REPLIES["openai"][1]


async def no_wait(_: float) -> None:
    pass


def patient(model: Model) -> ModelClient:
    return ModelClient(model, timeout_s=0.5, sleep=no_wait)


def config(folder: Any, up: Upstream, provider: str = "openai", prompts: Any = ("a flight to Oslo",)) -> Config:
    base = up.url + REPLIES[provider][0] if provider in REPLIES else None
    model = {"provider": provider, "name": "m", "base_url": base}
    return Config.of({"version": "2.0", "agent": {"endpoint": "x"}, "golden_prompts": [*prompts], "model": model}).at(
        str(folder)
    )


def ask(config: Config, *types: str, count: int = 4) -> tuple[list[Any], list[str]]:
    rows = written(config, Recipe(types or ("paraphrase",), count, 1, {}, {}), patient, in_a_loop)
    return [m for found, _ in rows for m in found], [note for _, notes in rows for note in notes]


@pytest.mark.parametrize("provider", REPLIES)
def test_one_question_for_each_prompt_and_type_and_none_the_second_time(tmp_path, up, provider) -> None:
    _, path, reply = REPLIES[provider]
    up.reply(path, reply)
    for _ in range(2):
        found, notes = ask(config(tmp_path, up, provider))
        assert ([m.text for m in found], notes) == (TEXTS, [])
        assert {(m.operator, m.kind, m.number) for m in found} == {("model", "benign", 0)}
        assert up.count(path) == 1


def test_what_the_model_leaves_out_is_written_by_operators_and_said(tmp_path, up) -> None:
    up.reply(PATH, openai_chat(json.dumps([*TEXTS[:2], "something about Bergen", "a flight to Oslo"])))
    found, notes = ask(config(tmp_path, up))
    assert [m.operator == "model" for m in found] == [True, True, False, False]
    assert notes == ["paraphrase: built-in operators wrote 2 of 4 mutations of 'a flight to Oslo'"]


def test_a_busy_provider_is_asked_again(tmp_path, up) -> None:
    up.reply(PATH, text("slow down", status=429), text("slow down", status=529), openai_chat(SAID))
    found, notes = ask(config(tmp_path, up))
    assert ([m.text for m in found], notes) == (TEXTS, [])


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(text("no", status=401), id="refused"),
        pytest.param(text("nonsense"), id="rubbish"),
        pytest.param(openai_chat("I would rather not."), id="no list"),
        pytest.param(openai_chat(""), id="empty"),
        pytest.param(HANG_UP, id="hang up"),
    ],
)
def test_a_model_that_gives_nothing_is_replaced(tmp_path, up, reply) -> None:
    up.reply(PATH, reply)
    found, notes = ask(config(tmp_path, up), "paraphrase", "noise", "http_header_injection")
    assert len(found) == 12
    assert all(m.number for m in found)
    assert any(note.startswith("paraphrase: built-in operators wrote 4 of 4") for note in notes)
    assert not any(note.startswith("http_header_injection") for note in notes)


def test_a_model_that_never_answers_is_not_asked_again_and_again(tmp_path, up) -> None:
    gate = Gate()
    up.reply(PATH, lambda _: (gate.wait(), openai_chat("late"))[1])
    try:
        found, notes = ask(config(tmp_path, up, prompts=tuple(f"to Oslo {n}" for n in range(9))), count=2)
    finally:
        gate.open()
    assert len(found) == 18
    assert any("could not be asked for all mutations: the model 'm' of openai gave no answer" in note for note in notes)
    assert up.count(PATH) <= FAILURES + 4


def test_without_a_model_the_operators_write_and_it_is_said(tmp_path, up) -> None:
    found, notes = ask(config(tmp_path, up, "none"))
    assert len(found) == 4
    assert notes == ["mutations.engine is llm, but no model is configured; the built-in operators wrote the mutations"]


def test_a_spoilt_store_is_asked_past(tmp_path, up) -> None:
    up.reply(PATH, openai_chat(SAID))
    ask(config(tmp_path, up))
    (kept,) = (tmp_path / ".flakestorm" / "mutations").glob("*.json")
    for rubbish in ("{", '{"a": 1}', "[1]", "[" * 100_000):
        kept.write_text(rubbish)
        assert [m.text for m in ask(config(tmp_path, up))[0]] == TEXTS
