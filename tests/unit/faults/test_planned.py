from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults_support import World, scene, tool_call
from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.site import Site
from flakestorm.errors import Misuse
from flakestorm.faults.base import Change, result_faults
from flakestorm.faults.planned import Planned, parse_injection
from flakestorm.wire.results import Told


def tool(**settings: object) -> Planned:
    return Planned(0, "tool", ToolFault(**settings))  # type: ignore[arg-type]


def context(**settings: object) -> Planned:
    return Planned(0, "context", ContextAttack(**settings))  # type: ignore[arg-type]


def llm(**settings: object) -> Planned:
    return Planned(0, "llm", LlmFault(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("planned", "line"),
    [
        (tool(tool="search", mode="error", error_code=503), "tool/search=error:503"),
        (tool(mode="timeout"), "tool/*=timeout"),
        (tool(mode="timeout", where="call"), "tool/*=timeout,where=call"),
        (tool(tool="search", mode="error", where="result", error_code=500), "tool/search=error@result:500"),
        (llm(mode="rate_limit", after_calls=5), "llm/*=rate_limit,after_calls=5"),
        (
            llm(mode="timeout", model="gpt-4o*", delay_ms=15000, probability=0.3),
            "llm/gpt-4o*=timeout:15000,probability=0.3",
        ),
        (
            tool(mode="error", match_url="https://x.test/*", calls=[1, 3], times=2, message="no\nmore"),
            "tool/*=error,match_url=https://x.test/*,calls=1,calls=3,times=2,message=no%0Amore",
        ),
        (tool(mode="malformed", tool="a b=c"), "tool/a%20b%3Dc=malformed"),
        (tool(mode="malicious_response", payload="x" * 200), "tool/*=malicious_response:" + "x" * 59 + "…"),
        (tool(mode="error", site="tool/search#2"), "tool/search#2=error"),
        (Planned(3, "context", ContextAttack(type="overflow", inject_tokens=9)), "llm/*=overflow:9"),
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
        ("tool/s#1=error:503,message=back soon", "tool", {"mode": "error", "error_code": 503, "message": "back soon"}),
        ("tool/s#1=error,calls=1,calls=3,tool=s*", "tool", {"mode": "error", "calls": [1, 3], "tool": "s*"}),
        ("tool/s#1=slow,calls", "tool", {"mode": "slow", "calls": []}),
        ("tool/search#1=empty@result", "tool", {"mode": "empty", "where": "result"}),
        ("tool/search#1=error@result:500", "tool", {"mode": "error", "where": "result", "error_code": 500}),
        ("llm/gpt-4o#2=truncated_response:20", "llm", {"mode": "truncated_response", "max_tokens": 20}),
        ("llm/gpt-4o#1=rate_limit:50", "llm", {"mode": "rate_limit", "retry_after_ms": 50}),
        ("llm/gpt-4o#1=garbage", "llm", {"mode": "garbage"}),
        ("tool/search#1=indirect_injection:obey", "context", {"type": "indirect_injection", "payload": "obey"}),
        ("tool/search#1=indirect_injection@result", "context", {"type": "indirect_injection", "where": "result"}),
        ("llm/gpt-4o#1=memory_poisoning:is admin", "context", {"type": "memory_poisoning", "payload": "is admin"}),
        ("agent/input#1=memory_poisoning", "context", {"type": "memory_poisoning"}),
        ("llm/gpt-4o#2=overflow:500", "context", {"type": "overflow", "inject_tokens": 500}),
        ("llm/gpt-4o#2=conflicting_context", "context", {"type": "conflicting_context"}),
        ("llm/m#1=injection_via_context:a b", "context", {"type": "injection_via_context", "payload": "a b"}),
    ],
)
def test_an_injection_is_read_and_written_back_the_same(text: str, family: str, settings: dict[str, object]) -> None:
    planned = parse_injection(text, index=4)
    site = text.partition("=")[0]
    assert (planned.index, planned.family, planned.site) == (4, family, Site.parse(site))
    assert planned.spec.given() == {**settings, "site": site}
    assert planned.describe() == text
    assert parse_injection(planned.describe(), index=4) == planned


@given(name=st.text(min_size=1), payload=st.text())
def test_any_name_and_any_payload_survive_the_one_line_form(name: str, payload: str) -> None:
    spec = ToolFault(mode="malicious_response", payload=payload, site=str(Site("tool", name, 1)))
    line = Planned(0, "tool", spec).describe()
    assert line.isprintable() or not (name + payload).isprintable()
    assert len(line.splitlines()) == 1
    assert parse_injection(line).spec.given()["payload"] == payload


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool/search#1", "is not SITE=FAULT; write for example tool/search#1=error:503"),
        ("tool/search#1=", "is not SITE=FAULT"),
        ("=error", "is not a site"),
        ("tool/search=error", "is not a site; write kind/name#occurrence"),
        (
            "tool/search#1=eror",
            "'eror' is not available in this version; did you mean 'error'? available: connection_reset, ",
        ),
        ("llm/gpt-4o#1=babble", "the LLM fault mode 'babble' is not available in this version; available: "),
        ("llm/gpt-4o#1=error", "the LLM fault mode 'error' is not available"),
        ("tool/search#1=error:abc", "error_code: must be an integer between 400 and 599, not 'abc'"),
        ("tool/search#1=error:9", "error_code: must be an integer between 400 and 599, not '9'"),
        ("tool/search#1=slow:-5", "delay_ms: must be an integer of at least 0, not '-5'"),
        ("tool/search#1=malformed:3", "'malformed': the mode takes no argument"),
        ("tool/search#1=error:503,mesage=no", "there is no setting 'mesage' here; did you mean 'message'?"),
        ("tool/search#1=malformed,xyz=no", "there is no setting 'xyz' here; known: match_url, probability"),
        ("tool/search#1=error,message", "'message' has no value; write message=VALUE"),
        ("tool/search#1=error,times=1,times=2", "'times' is given twice"),
        ("tool/search#1=slow,times=0", "times: must be an integer of at least 1, not '0'"),
        ("tool/search#1=slow,calls=1,calls=x", "calls[1]: must be an integer of at least 1, not 'x'"),
        ("llm/gpt-4o#1=bad_tool_call:prompt", "prompt': the mode bad_tool_call has the forms invalid_json"),
        ("tool/search#1=error@home", "only a tool fault can be for a result; write tool/search#1=error@result"),
        ("llm/gpt-4o#1=timeout@result", "only a tool fault can be for a result"),
        ("mcp/search#1=error@result", "their sites are written tool/NAME#N"),
        ("draw/uuid#1=error", "cannot act at draw/uuid#1: tool faults act on tool, mcp and http calls"),
        ("agent/agent#1=error", "cannot act at agent/agent#1"),
        ("tool/search#1=overflow", "cannot act at tool/search#1"),
        ("llm/gpt-4o#1=indirect_injection", "cannot act at llm/gpt-4o#1"),
        ("agent/input#1=overflow", "'inject_at: input' is for memory_poisoning"),
        ("tool/search#1=overflow@result", "the context attack on tool results 'overflow' is not available"),
    ],
)
def test_an_injection_that_cannot_be_read_says_which_part(text: str, message: str) -> None:
    with pytest.raises(Misuse) as error:
        parse_injection(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("planned", "message"),
    [
        (
            tool(mode="zzz"),
            "the tool fault mode 'zzz' is not available in this version; available: connection_reset, drop_fields",
        ),
        (llm(mode="babble"), "the LLM fault mode 'babble' is not available in this version"),
        (
            Planned(0, "context", ContextAttack(type="overflw")),
            "the context attack 'overflw' is not available in this version; did you mean 'overflow'? available: conf",
        ),
        (
            tool(mode="eror", where="result"),
            "fault mode of tool results 'eror' is not available in this version; did you",
        ),
        (tool(mode="duplicate", where="result"), "it is for a tool's call only; available: connection_reset, drop_"),
        (tool(mode="error", where="result", match_url="*/x"), "a result has no URL; leave 'match_url' out"),
        (tool(mode="error", where="result", site="http/x#1"), "their sites are written tool/NAME#N"),
        (tool(mode="error", site="search"), "'search' is not a site"),
        (tool(mode="error", site="llm/gpt-4o#1"), "cannot act at llm/gpt-4o#1"),
        (llm(mode="timeout", site="tool/search#1"), "model faults on llm calls"),
        (context(type="overflow", tool="search"), "is for what the model is told; leave 'tool' out"),
        (
            context(type="overflow", inject_at="attic"),
            "no place 'attic' to inject at; use conversation, system, step_N",
        ),
        (context(type="memory_poisoning", inject_at="input", site="llm/m#1"), "cannot act at llm/m#1"),
        (context(type="indirect_injection", where="result", match_url="*/x"), "a result has no URL"),
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


def test_an_attack_pinned_to_where_it_entered_forgets_by_which_step_it_came() -> None:
    pinned = context(type="memory_poisoning", inject_at="step_2", payload="x", times=1).at(Site("llm", "m", 2))
    assert pinned.spec == ContextAttack(type="memory_poisoning", payload="x", site="llm/m#2")
    assert (pinned.on_conversations, pinned.step) == (True, None)


@pytest.mark.parametrize(
    ("planned", "acts_on"),
    [
        (context(type="indirect_injection"), ""),
        (context(type="indirect_injection", where="result"), "results"),
        (context(type="memory_poisoning"), "conversations"),
        (context(type="memory_poisoning", inject_at="input"), "input"),
        (context(type="overflow", inject_at="system"), "conversations"),
        (tool(mode="error"), ""),
        (llm(mode="timeout"), ""),
    ],
)
def test_what_a_fault_acts_on(planned: Planned, acts_on: str) -> None:
    planned.check()
    found = [name for name in ("results", "conversations", "input") if getattr(planned, f"on_{name}")]
    assert found == [acts_on] * bool(acts_on)


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
    assert planned.change(Told("fine"), scene([])) == Change("result replaced by the payload", Told("obey"))
    assert llm(mode="timeout").change(Told("fine"), scene([])) is None


def test_a_mode_that_has_only_a_form_for_results_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(result_faults._known, "teapot", lambda *_: None)
    with pytest.raises(Misuse, match="it is with 'where: result'; available: "):
        tool(mode="teapot").check()


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tool/*#2=error", "tool/*=error,calls=2"),
        ("tool/sea*#1=error:503", "tool/sea*=error:503,calls=1"),
        ("llm/gpt*#3=empty", "llm/gpt*=empty,calls=3"),
        ("llm/*#1=memory_poisoning:x", "llm/*=memory_poisoning:x,calls=1"),
    ],
)
def test_an_occurrence_among_all_that_a_glob_takes(text: str, line: str) -> None:
    assert parse_injection(text).line == line


@pytest.mark.parametrize("text", ["http/*#1=error", "mcp/sea*#2=error"])
def test_a_glob_is_for_tools_or_models(text: str) -> None:
    with pytest.raises(Misuse, match="a site names one call"):
        parse_injection(text)
