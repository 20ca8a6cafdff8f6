from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import World, scene, tool_call
from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.choices import Choices
from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from flakestorm.faults.base import Change
from flakestorm.faults.planned import Planned, parse_injection
from flakestorm.wire.results import Told


def tool(**settings: object) -> Planned:
    return Planned(0, "tool", ToolFault(**settings))  # type: ignore[arg-type]


def llm(**settings: object) -> Planned:
    return Planned(0, "llm", LlmFault(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("planned", "line"),
    [
        (tool(tool="search", mode="error", error_code=503), "tool/search=error:503"),
        (tool(mode="timeout"), "tool/*=timeout"),
        (tool(mode="timeout", where="call"), "tool/*=timeout (where call)"),
        (tool(tool="search", mode="error", where="result", error_code=500), "tool/search=error@result:500"),
        (llm(mode="rate_limit", after_calls=5), "llm/*=rate_limit (after 5)"),
        (llm(mode="timeout", model="gpt-4o*", delay_ms=15000, probability=0.3), "llm/gpt-4o*=timeout:15000 (p 0.3)"),
        (
            tool(mode="error", match_url="https://x.test/*", calls=[1, 3], times=2, message="no\nmore"),
            "tool/*=error (url https://x.test/*, calls 1 3, at most 2, message no%0Amore)",
        ),
        (tool(mode="malformed", tool="a b=c"), "tool/a%20b%3Dc=malformed"),
        (tool(mode="malicious_response", payload="x" * 200), "tool/*=malicious_response:" + "x" * 40 + "…"),
        (tool(mode="error", site="tool/search#2"), "tool/search#2=error"),
        (Planned(3, "context", ContextAttack(type="overflow", inject_tokens=9)), "tool/*=overflow (inject_tokens 9)"),
    ],
)
def test_a_fault_is_described_in_one_line(planned: Planned, line: str) -> None:
    assert planned.describe() == line


@pytest.mark.parametrize(
    ("text", "family", "settings"),
    [
        ("tool/search#1=error:503", "tool", {"mode": "error", "error_code": 503}),
        ("tool/search#1=error", "tool", {"mode": "error"}),
        ("mcp/read_file#2=slow:500", "tool", {"mode": "slow", "delay_ms": 500}),
        ("http/api.test:8443#1=timeout:2000", "tool", {"mode": "timeout", "delay_ms": 2000}),
        ("tool/a%20b%3Dc#1=malformed", "tool", {"mode": "malformed"}),
        ("tool/s#1=malicious_response:a=b: 50%25", "tool", {"mode": "malicious_response", "payload": "a=b: 50%"}),
        ("tool/search#1=empty@result", "tool", {"mode": "empty", "where": "result"}),
        ("tool/search#1=error@result:500", "tool", {"mode": "error", "where": "result", "error_code": 500}),
        ("llm/gpt-4o#2=truncated_response:20", "llm", {"mode": "truncated_response", "max_tokens": 20}),
        ("llm/gpt-4o#1=rate_limit:50", "llm", {"mode": "rate_limit", "retry_after_ms": 50}),
        ("llm/gpt-4o#1=garbage", "llm", {"mode": "garbage"}),
    ],
)
def test_an_injection_is_read_and_written_back_the_same(text: str, family: str, settings: dict[str, object]) -> None:
    planned = parse_injection(text, index=4)
    site = text.partition("=")[0]
    assert (planned.index, planned.family, planned.site) == (4, family, Site.parse(site))
    assert planned.spec.model_dump(exclude_unset=True) == {**settings, "site": site}
    assert planned.describe() == text
    assert parse_injection(planned.describe(), index=4) == planned


@given(name=st.text(min_size=1), payload=st.text())
def test_any_name_and_any_payload_survive_the_one_line_form(name: str, payload: str) -> None:
    spec = ToolFault(mode="malicious_response", payload=payload, site=str(Site("tool", name, 1)))
    line = Planned(0, "tool", spec).describe()
    assert line.isprintable() or not (name + payload).isprintable()
    assert len(line.splitlines()) == 1
    assert parse_injection(line).spec.model_dump()["payload"] == payload


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool/search#1", "is not SITE=FAULT; write for example tool/search#1=error:503"),
        ("tool/search#1=", "is not SITE=FAULT"),
        ("=error", "is not a site"),
        ("tool/search=error", "is not a site; write kind/name#occurrence"),
        ("tool/search#1=eror", "'eror' is not available in this version; did you mean 'error'? available: error"),
        ("llm/gpt-4o#1=stream_cut", "the LLM fault mode 'stream_cut' is not available in this version; available: "),
        ("llm/gpt-4o#1=error", "the LLM fault mode 'error' is not available"),
        ("tool/search#1=error:abc", "error_code: Input should be a valid integer"),
        ("tool/search#1=error:9", "error_code: Input should be greater than or equal to 400"),
        ("tool/search#1=slow:-5", "delay_ms: Input should be greater than or equal to 0"),
        ("tool/search#1=malformed:3", "'malformed' takes no argument; write tool/search#1=malformed"),
        ("tool/search#1=error@home", "only a tool fault can be for a result; write tool/search#1=error@result"),
        ("llm/gpt-4o#1=timeout@result", "only a tool fault can be for a result"),
        ("mcp/search#1=error@result", "their sites are written tool/NAME#N"),
        ("draw/uuid#1=error", "cannot act at draw/uuid#1: tool faults act on tool, mcp and http calls"),
        ("agent/agent#1=error", "cannot act at agent/agent#1"),
    ],
)
def test_an_injection_that_cannot_be_read_says_which_part(text: str, message: str) -> None:
    with pytest.raises(Misuse) as error:
        parse_injection(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("planned", "message"),
    [
        (tool(mode="flap"), "the tool fault mode 'flap' is not available in this version; available: error, malformed"),
        (llm(mode="stream_cut"), "the LLM fault mode 'stream_cut' is not available in this version"),
        (
            Planned(0, "context", ContextAttack(type="overflow")),
            "the context attack 'overflow' is not available in this version; available: indirect_injection",
        ),
        (
            tool(mode="eror", where="result"),
            "fault mode of tool results 'eror' is not available in this version; did you",
        ),
        (tool(mode="duplicate", where="result"), "available: connection_reset, empty, error, malformed"),
        (tool(mode="connection_reset"), "it is with 'where: result'; available: error, malformed"),
        (tool(mode="error", where="result", match_url="*/x"), "a result has no URL; leave 'match_url' out"),
        (tool(mode="error", where="result", site="http/x#1"), "their sites are written tool/NAME#N"),
        (tool(mode="error", site="search"), "'search' is not a site"),
        (tool(mode="error", site="llm/gpt-4o#1"), "cannot act at llm/gpt-4o#1"),
        (llm(mode="timeout", site="tool/search#1"), "model faults on llm calls"),
    ],
)
def test_what_cannot_be_played_is_refused(planned: Planned, message: str) -> None:
    with pytest.raises(Misuse) as error:
        planned.check()
    assert message in str(error.value)


def test_a_fault_pinned_to_where_it_fired_keeps_what_it_did_and_loses_its_triggers() -> None:
    planned = tool(tool="sea*", mode="error", error_code=500, message="no", probability=0.1, after_calls=2, times=1)
    pinned = planned.at(Site("tool", "search", 3))
    assert pinned.spec == ToolFault(mode="error", error_code=500, message="no", site="tool/search#3")
    assert pinned.describe().startswith("tool/search#3=error:500")
    pinned.check()


def test_a_fault_for_results_stays_one_when_it_is_pinned() -> None:
    pinned = tool(tool="search", mode="error", where="result", times=1).at(Site("tool", "search", 2))
    assert parse_injection(pinned.describe()).spec == pinned.spec


@pytest.mark.parametrize(
    ("planned", "particular"),
    [
        (tool(mode="error"), False),
        (tool(mode="error", tool="search"), True),
        (tool(mode="error", match_url="*"), True),
        (tool(mode="error", site="tool/a#1"), True),
        (llm(mode="timeout"), False),
        (llm(mode="timeout", model="gpt*"), True),
    ],
)
def test_a_particular_fault_names_what_it_is_for(planned: Planned, particular: bool) -> None:
    assert planned.particular is particular


def test_change_is_what_the_fault_makes_of_a_result() -> None:
    planned = tool(mode="malicious_response", payload="obey")
    assert planned.change(Told("fine"), Choices(1)) == Change("result replaced by the payload", Told("obey"))
    assert llm(mode="timeout").change(Told("fine"), Choices(1)) is None


def test_build_gives_the_fault_with_its_settings() -> None:
    world, fired = World(), list[str]()
    reply = world.cross(tool(mode="error", error_code=418).build(scene(fired)), tool_call())
    assert reply.status == 418
    assert fired


@pytest.mark.parametrize(
    ("planned", "named"),
    [
        (tool(mode="error", tool="sea*"), True),
        (tool(mode="error", tool="pay"), False),
        (tool(mode="error"), False),
        (tool(mode="error", tool="search", match_url="*/x"), False),
        (tool(mode="error", site="tool/search#3"), True),
        (llm(mode="timeout", model="search"), False),
    ],
)
def test_whether_a_fault_is_for_a_tool_by_its_own_words(planned: Planned, named: bool) -> None:
    assert planned.names("search") is named
