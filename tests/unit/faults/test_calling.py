from __future__ import annotations

import json
from dataclasses import replace

import orjson
import pytest

from faults_support import World, llm_fault
from flakestorm.config.model import LlmFault
from flakestorm.core.call import Reply
from flakestorm.faults.base import llm_faults
from flakestorm.wire.base import Said
from flakestorm.wire.protocols import wire_of
from model_replies import PAY, TOOLS, WIRES, WORDS, call_of, reply_of

SEARCH = ("search", {"q": "Oslo"})
STRINGS = ("openai_chat", "openai_responses")
FORMS = [(wire, stream) for wire in WIRES for stream in (False, True)]
each = pytest.mark.parametrize(
    ("wire", "stream"), FORMS, ids=lambda v: v if isinstance(v, str) else ("", "streamed")[v]
)


def cross(fired: list[str], wire: str, reply: Reply, call=None, **settings: object) -> tuple[Said, bytes]:  # type: ignore[no-untyped-def]
    call = call or call_of(wire, stream=reply.streamed)
    _, body = World(reply).read(llm_fault(fired, "bad_tool_call", **settings), call)
    spoken = wire_of(wire)
    assert spoken is not None
    return spoken.said(body, stream=reply.streamed), body


def test_it_is_registered() -> None:
    assert "bad_tool_call" in llm_faults


@each
@pytest.mark.parametrize("seed", range(4))
def test_an_unknown_tool_is_one_that_was_not_offered(wire: str, stream: bool, seed: int) -> None:
    fired: list[str] = []
    said, _ = cross(fired, wire, reply_of(wire, calls=[PAY, SEARCH], stream=stream), form="unknown_tool", seed=seed)
    first, second = said.tool_calls
    assert first.name not in TOOLS
    assert (json.loads(first.arguments), second.name, json.loads(second.arguments)) == (PAY[1], *SEARCH)
    assert (said.text, said.complete) == (WORDS, True)
    assert fired == [f"pay is called {first.name}, which was not offered"]


@each
@pytest.mark.parametrize("seed", range(4))
def test_a_missing_argument_is_one_that_the_schema_requires(wire: str, stream: bool, seed: int) -> None:
    fired: list[str] = []
    reply = reply_of(wire, None, [("pay", {**PAY[1], "note": "thanks"})], stream=stream)
    said, _ = cross(fired, wire, reply, form="missing_argument", seed=seed)
    given = json.loads(said.tool_calls[0].arguments)
    (gone,) = {"eur", "to", "note"} - set(given)
    assert gone in TOOLS["pay"]["required"]
    assert said.tool_calls[0].name == "pay"
    assert fired == [f"argument {gone} of pay left out"]


@each
def test_the_first_call_that_can_be_broken_so_is_broken(wire: str, stream: bool) -> None:
    fired: list[str] = []
    reply = reply_of(wire, None, [SEARCH, PAY], stream=stream)  # the schema of `search` requires nothing
    said, _ = cross(fired, wire, reply, form="missing_argument")
    assert json.loads(said.tool_calls[0].arguments) == SEARCH[1]
    assert len(json.loads(said.tool_calls[1].arguments)) == 1


def test_without_a_schema_any_argument_may_be_missing() -> None:
    call = replace(call_of("openai_chat"), body=b'{"model":"m","messages":[],"tools":[{"function":{"name":"search"}}]}')
    said, _ = cross([], "openai_chat", reply_of("openai_chat", None, [SEARCH]), call, form="missing_argument")
    assert said.tool_calls[0].arguments == "{}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", STRINGS)
def test_invalid_json_is_what_a_model_might_write(wire: str, stream: bool) -> None:
    found: set[str] = set()
    for seed in range(12):
        fired: list[str] = []
        said, _ = cross(fired, wire, reply_of(wire, None, [PAY], stream=stream), form="invalid_json", seed=seed)
        arguments = said.tool_calls[0].arguments
        with pytest.raises(ValueError):
            json.loads(arguments)
        assert "120" in arguments
        assert fired[0].startswith("arguments of pay ")
        found.add(fired[0])
    assert len(found) == 3


def test_anthropic_streams_the_beginning_of_the_arguments() -> None:
    fired: list[str] = []
    said, _ = cross(fired, "anthropic", reply_of("anthropic", None, [PAY], stream=True), form="invalid_json")
    assert orjson.dumps(PAY[1]).decode().startswith(said.tool_calls[0].arguments)
    with pytest.raises(ValueError):
        json.loads(said.tool_calls[0].arguments)
    assert fired == ["arguments of pay end early"]


def test_a_whole_reply_of_anthropic_has_what_came_before_the_damage() -> None:
    fired: list[str] = []
    said, _ = cross(fired, "anthropic", reply_of("anthropic", None, [PAY]), form="invalid_json")
    assert json.loads(said.tool_calls[0].arguments) == {"eur": 120}
    assert fired == ["arguments of pay end early"]


@pytest.mark.parametrize(
    ("wire", "stream", "finish"),
    [
        ("gemini", False, "MALFORMED_FUNCTION_CALL"),
        ("gemini", True, "MALFORMED_FUNCTION_CALL"),
        ("bedrock", False, "malformed_tool_use"),
    ],
)
def test_google_and_amazon_have_a_finish_for_it(wire: str, stream: bool, finish: str) -> None:
    fired: list[str] = []
    said, _ = cross(fired, wire, reply_of(wire, calls=[PAY, SEARCH], stream=stream), form="invalid_json")
    assert (said.text, said.tool_calls, said.finish, said.complete) == (WORDS, (), finish, True)
    assert fired == ["arguments of pay end early"]


@pytest.mark.parametrize("stream", [False, True])
def test_ollama_leaves_it_in_the_text(stream: bool) -> None:
    fired: list[str] = []
    said, _ = cross(fired, "ollama", reply_of("ollama", calls=[PAY, SEARCH], stream=stream), form="invalid_json")
    assert said.text == WORDS + '{"name": "pay", "arguments": {"eur":120,"to":"O'
    assert ([call.name for call in said.tool_calls], said.finish) == (["search"], "stop")
    assert fired == ["arguments of pay end early"]


@each
def test_the_seed_chooses_the_form(wire: str, stream: bool) -> None:
    reply = reply_of(wire, None, [PAY], stream=stream)
    seen: set[str] = set()
    for seed in range(20):
        fired: list[str] = []
        said, body = cross(fired, wire, reply, seed=seed)
        assert (said, body) == cross([], wire, reply, seed=seed)
        seen.add(fired[0].split(" ")[0])
    assert seen == {"arguments", "pay", "argument"}


@each
def test_an_answer_without_a_tool_call_is_left_alone(wire: str, stream: bool) -> None:
    fired, reply = list[str](), reply_of(wire, stream=stream)
    _, body = cross(fired, wire, reply)
    assert body == (reply.body if isinstance(reply.body, bytes) else b"".join(reply.body))  # type: ignore[arg-type]
    assert fired == []


@pytest.mark.parametrize("form", ["missing_argument", "invalid_json"])
def test_a_tool_that_takes_free_text_has_no_arguments_to_break(form: str) -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    choice = {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [custom]}}
    reply = Reply(200, (("content-type", "application/json"),), orjson.dumps({"choices": [choice]}))
    fired: list[str] = []
    _, body = cross(fired, "openai_chat", reply, form=form)
    assert (body, fired) == (reply.body, [])
    said, _ = cross(fired, "openai_chat", reply)
    assert said.tool_calls[0].name != "shell"


def test_a_form_of_another_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="bad_tool_call has the forms invalid_json, unknown_tool, missing_argum"):
        LlmFault(mode="bad_tool_call", form="prompt")


def test_what_no_wire_understands_passes_untouched() -> None:
    world = World(reply_of("openai_chat", None, [PAY]))
    assert world.cross(llm_fault([], "bad_tool_call"), replace(call_of("openai_chat"), wire="")) is world.answer
