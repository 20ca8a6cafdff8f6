"""Agents in Node: the official SDKs, and fetch alone. Launched, recorded and broken; not one line of theirs is ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e_support import LONG_ANSWER, world
from foreign_support import MODEL, needs_node, node_agent, results_in, sites, tape_of, try_out
from upstream import Gate, Request, Upstream, anthropic_stream, document, openai_stream

pytestmark = needs_node

CLIENTS = ("openai", "anthropic", "fetch")
PATH = {"openai": "/v1/chat/completions", "fetch": "/v1/chat/completions", "anthropic": "/v1/messages"}
BUSY = {"name": "busy", "llm_faults": [{"mode": "rate_limit"}]}
CUT = {"name": "cut", "llm_faults": [{"mode": "truncated_response", "max_tokens": 4, "after_calls": 1}]}
BROKEN = {"name": "broken", "tool_faults": [{"tool": "search", "mode": "error", "error_code": 503}]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_recorded_untouched_and_broken(tmp_path: Path, client: str, stream: bool) -> None:
    model = MODEL[client]
    with world() as up:
        agent = node_agent(client, up.url, stream=stream)
        done = try_out(tmp_path, agent, {"name": "calm"}, BUSY, CUT, BROKEN)
        told = results_in(up, PATH[client])
    exchanges = tape_of(tmp_path, done, "calm")
    assert done.run("calm")["output"] == LONG_ANSWER
    assert sites(exchanges) == [f"llm/{model}#1", f"llm/{model}#2"]
    first, last = (exchange["reply"] for exchange in exchanges)
    assert [call["name"] for call in first["tool_calls"]] == ["search"]
    assert (last["text"], first["stream"], last["stream"]) == (LONG_ANSWER, stream, stream)
    # Each of an SDK's own retries is an exchange.
    assert done.run("busy")["output"] == "the model is busy"
    attempts = 1 if client == "fetch" else 3
    assert [e["reply"]["status"] for e in tape_of(tmp_path, done, "busy")] == [429] * attempts
    assert done.run("cut")["output"].startswith("CUT: I found")
    assert len(done.run("cut")["output"]) < len(LONG_ANSWER)
    # The tool is a function that no seam can see; its result is broken by its name, on the way to the model.
    assert [(f["site"], f["mode"]) for f in done.run("broken")["faults"]["fired"]] == [("tool/search#1", "error")]
    # `calm` and `cut` told it; `busy` got no further than its first call.
    untouched = [each for each in told if each == '{"flights": 3}']
    (broken,) = [each for each in told if each not in untouched]
    assert (len(untouched), "503" in broken, "flights" in broken) == (
        2,
        True,
        False,
    )


def test_an_http_tool_is_named_by_its_url_and_broken_where_it_is_called(tmp_path: Path) -> None:
    with world() as up:
        agent = node_agent("openai", up.url, tool="axios", SEARCH_URL=f"{up.url}/search")
        done = try_out(tmp_path, agent, {"name": "calm"}, BROKEN, boundary={"tools": {"search": "*/search*"}})
        assert up.count("/search") == 1  # in the calm run alone
    assert sites(tape_of(tmp_path, done, "calm")) == ["llm/gpt-4o#1", "tool/search#1", "llm/gpt-4o#2"]
    assert done.run("broken")["output"] == "search is unavailable: Request failed with status code 503"


def test_an_http_tool_that_node_calls_around_the_proxy_is_broken_in_its_result(tmp_path: Path) -> None:
    with world() as up:
        agent = node_agent("openai", up.url, tool="fetch", SEARCH_URL=f"{up.url}/search")
        done = try_out(tmp_path, agent, BROKEN)
        assert up.count("/search") == 1  # nothing was in its way
        (told,) = results_in(up, PATH["openai"])
    assert [f["site"] for f in done.run("broken")["faults"]["fired"]] == ["tool/search#1"]
    assert "503" in told


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_reaches_the_agent_word_by_word(tmp_path: Path, client: str) -> None:
    """The upstream sends its second word only when the agent has acknowledged the first."""
    with Upstream() as up:
        gate = Gate()

        def acknowledged(_: Request) -> object:
            gate.open()
            return document({"ok": True})

        up.reply("/ack", acknowledged)  # type: ignore[arg-type]
        up.reply("/v1/chat/completions", openai_stream(["one", " two"], gates={2: gate}))
        up.reply("/v1/messages", anthropic_stream(["one", " two"], gates={3: gate}))
        agent = node_agent(client, up.url, stream=True, ACK_URL=f"{up.url}/ack")
        done = try_out(tmp_path, agent, {"name": "calm"})
        assert up.count("/ack") == 1
    assert done.run("calm")["output"] == "one two"
