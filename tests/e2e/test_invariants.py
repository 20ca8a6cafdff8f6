"""Contracts judged through the command line: all kinds of rules on one agent, and what earlier versions got wrong."""

import json
import re

import pytest
import yaml

from e2e_support import flakestorm, write_config
from flakestorm.demo.run import CONFIG, serve
from upstream import Upstream, document, openai_chat

AGENT = '''
import json, os
from urllib.parse import quote
import httpx

CALLS = {"n": 0}

def ask(messages):
    reply = httpx.post(os.environ["LLM_URL"] + "/v1/chat/completions", json={"model": "gpt-4o", "messages": messages})
    return reply.json()["choices"][0]["message"]

def look_up(query):
    """A plain function, which no seam sees."""
    if "Rome" in query:
        return "Error: no such city"
    return '{"flight": "SK4521", "price": 129, "date": "2026-05-12"}'

def answer(prompt):
    messages = [{"role": "user", "content": prompt}]
    for _ in range(4):
        message = ask(messages)
        if not message.get("tool_calls"):
            return message["content"]
        messages.append(message)
        for call in message["tool_calls"]:
            result = look_up(json.loads(call["function"]["arguments"])["to"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return "I give up."
'''

RULES = """
def short(run):
    return len(run.output) < 200

def looked_up_once(run):
    return len(run.calls(tool="look_up")) == 1

def broken(run):
    return look(run)

def look(run):
    raise KeyError("flights")
"""


def model(request):
    """Asks for the tool, believes what it says; as a judge, it likes what is short."""
    asked = request.json()
    last = asked["messages"][-1]
    if asked["messages"][0]["role"] == "system":
        verdict = "fail" if "Rome" in last["content"] else "pass"
        return openai_chat(json.dumps({"verdict": verdict, "reason": "so it seems"}))
    if last["role"] == "tool":
        if "Error" in last["content"]:
            return openai_chat("Your flight AZ100 to Rome is booked for 99 EUR.")
        return openai_chat("SK4521 flies on May 12 for 129 EUR.")
    return openai_chat(tool_calls=[("call_1", "look_up", {"to": last["content"]})])


def invariant(type_, **settings):
    return {"id": settings.pop("id", type_), "type": type_, **settings}


ALL = [
    invariant("tool_called", tool="look_up"),
    invariant("tool_order", before="look_up", after="pay"),
    invariant("tool_args", tool="look_up", schema="look_up.schema.json"),
    invariant("max_tokens", limit=36),
    invariant("no_retry_storm"),
    invariant("grounded"),
    invariant("acknowledges_failure"),
    invariant("similarity", expected="SK4521 flies for 129 EUR on May 12."),
    invariant("check", id="short", function="rules:short"),
    invariant("check", id="once", function="rules:looked_up_once"),
    invariant("check", id="broken", function="rules:broken"),
    invariant("judge", rubric="The answer names a flight that exists."),
]


def contract(tmp_path, up, invariants, *, prompts=("Oslo", "Rome"), matrix=({"name": "calm"},), **blocks):
    (tmp_path / "looker.py").write_text(AGENT)
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "look_up.schema.json").write_text('{"type": "object", "required": ["to"]}')
    write_config(
        tmp_path,
        agent={"type": "python", "endpoint": "looker:answer"},
        golden_prompts=list(prompts),
        contract={"name": "flights", "invariants": invariants, "chaos_matrix": list(matrix)},
        **blocks,
    )
    return {"LLM_URL": up.url, "OPENAI_API_KEY": "test-key-of-nobody"}


def test_every_kind_of_rule_on_a_tool_inside_the_agent(tmp_path) -> None:
    with Upstream() as up:
        up.reply("/v1/chat/completions", model)
        judge = {"provider": "openai", "name": "judge", "base_url": f"{up.url}/v1"}
        env = contract(tmp_path, up, ALL, model=judge)
        checked = flakestorm(tmp_path, "contract", "validate", env=env)
        assert (checked.code, up.count()) == (0, 0), checked.err
        done = flakestorm(tmp_path, "contract", "run", "--min-score", "0", report=True, env=env)
        assert up.count() == 2 * 2 + 2 * 2  # two calls of the agent's and two questions to the judge for each prompt
    assert done.report is not None, done.err
    found = {(c["invariant"], c["prompt"]): c["verdict"] for c in done.report["cells"]}
    assert {name: [found.get((name, prompt)) for prompt in (0, 1)] for name in [i["id"] for i in ALL]} == {
        "tool_called": ["pass", "pass"],
        "tool_order": ["inconclusive", "inconclusive"],  # nobody has heard of a tool called pay
        "tool_args": ["pass", "pass"],
        "max_tokens": ["pass", "pass"],
        "no_retry_storm": ["pass", "pass"],
        "grounded": ["pass", "fail"],
        "acknowledges_failure": [None, "fail"],
        "similarity": ["pass", "fail"],
        "short": ["pass", "pass"],
        "once": ["pass", "pass"],
        "broken": ["inconclusive", "inconclusive"],
        "judge": ["pass", "fail"],
    }
    crash = next(c["reason"] for c in done.report["cells"] if c["invariant"] == "broken")
    assert crash.startswith("check crashed: KeyError: 'flights' (in look, ")
    assert re.search(r"in look, \S+/rules\.py:12, called in broken, \S+/rules\.py:9", crash)
    assert any("judge judge changed its mind in 0 of 2 runs" in note for note in done.report["notes"])
    assert all(run["calls"]["llm"] == 2 for run in done.report["runs"])  # the judge is on nobody's tape


def test_a_judge_that_cannot_be_asked_or_talks_rubbish_is_never_a_pass(tmp_path) -> None:
    with Upstream() as up:
        up.reply("/v1/chat/completions", model)
        up.reply("/judge/chat/completions", openai_chat("Looks good to me!"))
        judge = {"provider": "openai", "name": "judge", "base_url": f"{up.url}/judge"}
        env = contract(tmp_path, up, [invariant("judge", rubric="fine")], prompts=["Oslo"], model=judge)
        assert flakestorm(tmp_path, "contract", "run", env=env).code == 3
        up.reply("/judge/chat/completions", document({"error": {"message": "bad key"}}, status=401))
        done = flakestorm(tmp_path, "contract", "run", report=True, env=env)
    assert done.code == 3
    assert "bad key" in done.cell("calm", "judge")["reason"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"type": "judge", "rubric": "polite"}, "model: bad asks a model to judge, and none is configured"),
        ({"type": "check", "function": "rules:missing"}, "there is no 'missing' in rules"),
        ({"type": "tool_args", "tool": "t", "schema": "nowhere.json"}, "the schema file 'nowhere.json' cannot be read"),
        ({"type": "json_schema", "schema": {"type": "objekt"}}, "'schema' is not a JSON Schema"),
        ({"type": "max_calls", "limit": 1, "kind": "llms"}, "unknown kind 'llms'"),
        ({"type": "grounded", "limits": 3}, "limits"),
    ],
)
def test_wrong_settings_are_named_by_file_and_line(tmp_path, rule, message) -> None:
    with Upstream() as up:
        env = contract(tmp_path, up, [{"id": "bad", **rule}])
        done = flakestorm(tmp_path, "contract", "validate", env=env)
        assert (done.code, up.count()) == (2, 0)
    assert message in done.err
    if rule["type"] != "judge":  # there, it is the model that is missing
        assert "flakestorm.yaml:" in done.err


DOWN = {"name": "down", "llm_faults": [{"mode": "rate_limit"}]}


def test_behaviour_is_compared_with_one_run_without_chaos_per_prompt(tmp_path) -> None:
    cut = {"name": "cut", "llm_faults": [{"mode": "truncated_response", "max_tokens": 2, "calls": [2]}]}
    with Upstream() as up:
        up.reply("/v1/chat/completions", model)
        env = contract(tmp_path, up, [invariant("behavior_unchanged")], prompts=["Oslo"], matrix=[cut])
        done = flakestorm(tmp_path, "contract", "run", report=True, env=env)
    assert done.code == 1, done.err
    assert "alike to the baseline" in done.cell("cut", "behavior_unchanged")["reason"]
    assert [run["scenario"] for run in done.report["runs"]] == ["no chaos", "cut"]  # type: ignore[index]


class TestWhatEarlierVersionsGotWrong:
    def run(self, tmp_path, invariants, **more):
        with Upstream() as up:
            up.reply("/v1/chat/completions", more.pop("model", model))
            env = contract(tmp_path, up, invariants, prompts=["Oslo"], **more)
            return flakestorm(tmp_path, "contract", "run", report=True, env=env)

    def test_a_failing_contract_exits_1_and_a_kept_one_0(self, tmp_path) -> None:
        assert self.run(tmp_path, [invariant("contains", value="SK4521")]).code == 0
        assert self.run(tmp_path, [invariant("contains", value="LH1")]).code == 1

    def test_behaviour_without_a_baseline_is_no_pass(self, tmp_path) -> None:
        done = self.run(
            tmp_path,
            [invariant("behavior_unchanged")],
            matrix=[{"name": "slow", "llm_faults": [{"mode": "timeout", "delay_ms": 1, "calls": [9]}]}],
            model=lambda request: openai_chat(""),
        )
        assert done.code == 3
        assert done.cell("slow", "behavior_unchanged")["verdict"] == "inconclusive"

    def test_excluded_patterns_are_patterns(self, tmp_path) -> None:
        assert self.run(tmp_path, [invariant("excludes_pattern", patterns=[r"SK\d{4}"])]).code == 1
        assert self.run(tmp_path, [invariant("excludes_pattern", patterns=[r"SK\d{5}"])]).code == 0

    def test_when_decides_where_a_rule_applies(self, tmp_path) -> None:
        rule = invariant("contains", id="sorry", value="sorry", when="llm_faults_active")
        kept = invariant("completes")
        done = self.run(tmp_path, [rule, kept], matrix=[{"name": "calm"}, DOWN])
        assert done.report is not None, done.err
        assert [c["scenario"] for c in done.report["cells"] if c["invariant"] == "sorry"] == ["down"]

    def test_every_type_can_be_negated(self, tmp_path) -> None:
        assert self.run(tmp_path, [invariant("contains", value="LH1", negate=True)]).code == 0
        assert self.run(tmp_path, [invariant("tool_called", tool="look_up", negate=True)]).code == 1

    def test_global_chaos_does_not_reach_into_scenarios(self, tmp_path) -> None:
        done = self.run(tmp_path, [invariant("completes")], chaos={"llm_faults": [{"mode": "rate_limit"}]})
        assert done.code == 0, done.err
        assert done.run("calm")["faults"]["fired"] == []


DEMO_RULES = [
    invariant("tool_order", before="search_flights", after="book_flight"),
    invariant("tool_args", tool="book_flight", schema={"required": ["flight", "date", "passenger"]}),
    invariant("no_retry_storm", limit=1, window_ms=60000),
    invariant("max_tokens", limit=100000),
    invariant("max_cost", limit=0.1),
    invariant("grounded"),
    invariant("acknowledges_failure"),
    invariant("recovers"),
    invariant("behavior_unchanged"),
]

DEMO_MATRIX = [
    {"name": "calm"},
    {"name": "search-down", "tool_faults": [{"tool": "search_flights", "mode": "error"}]},
    {"name": "desk-hangs", "tool_faults": [{"tool": "book_flight", "mode": "timeout"}]},
    {"name": "limited", "llm_faults": [{"mode": "rate_limit", "times": 1}]},
    {"name": "hiccup", "tool_faults": [{"tool": "search_flights", "mode": "error", "times": 1}]},
]


def test_on_the_demo_s_agent_with_its_planted_bug(tmp_path) -> None:
    config = yaml.safe_load(CONFIG.read_text())
    config["golden_prompts"] = config["golden_prompts"][:1]
    config["contract"].update(invariants=DEMO_RULES, chaos_matrix=DEMO_MATRIX)
    (tmp_path / "flakestorm.yaml").write_text(yaml.safe_dump(config))
    with serve(reports=tmp_path / "reports") as variables:
        done = flakestorm(tmp_path, "contract", "run", report=True, env=variables)
    assert done.report is not None, done.err
    found = {name: {} for name in (rule["id"] for rule in DEMO_RULES)}
    for cell in done.report["cells"]:
        found[cell["invariant"]][cell["scenario"]] = cell["verdict"]
    everywhere = {scenario["name"]: "pass" for scenario in DEMO_MATRIX}
    assert found == {
        "tool_order": everywhere,
        "tool_args": everywhere,
        "no_retry_storm": everywhere | {"limited": "fail"},  # the SDK's one retry, where none is allowed
        "max_tokens": everywhere,
        "max_cost": everywhere,
        "grounded": everywhere,
        "acknowledges_failure": {"search-down": "pass", "desk-hangs": "fail", "hiccup": "pass"},
        "recovers": {"limited": "pass", "hiccup": "fail"},  # it never searches again
        "behavior_unchanged": {"search-down": "fail", "desk-hangs": "fail", "limited": "pass", "hiccup": "fail"},
    }, json.dumps(list(done.report["cells"]), indent=1)
