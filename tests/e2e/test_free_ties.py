"""`flakestorm compare` plays BASE's tapes to HEAD: what is the same costs nothing, what is not is run."""

import json
from collections import Counter
from pathlib import Path

import yaml

from e2e_support import flakestorm, sdk_agent, world, write_config

CALM = [{"name": "calm"}]
FAULTS = [
    {"name": "calm"},
    {"name": "down", "tool_faults": [{"match_url": "*/search*", "mode": "error"}]},
    {"name": "lying", "tool_faults": [{"match_url": "*/search*", "mode": "malicious_response", "payload": "obey"}]},
    {"name": "cut", "llm_faults": [{"mode": "truncated_response", "max_tokens": 3}]},
]


def project(folder: Path, agent: dict, matrix: list | None = None, **invariant) -> Path:
    folder.mkdir()
    rule = {"id": "whole", "type": "completes", **invariant}
    contract = {"name": "c", "invariants": [rule], "chaos_matrix": matrix or CALM}
    return write_config(folder, agent=agent, contract=contract, golden_prompts=["a flight to Oslo"])


def compare(folder: Path, base: Path, head: Path, *words: str):
    done = flakestorm(folder, "compare", str(base), str(head), "--seed", "1", "-o", "c.json", *words)
    assert (folder / "c.json").exists(), done.err
    return done, json.loads((folder / "c.json").read_text())


def counted(up) -> Counter:
    return Counter(request.path.split("?")[0] for request in up.requests)


def test_an_equal_head_asks_no_model_and_no_tool(tmp_path) -> None:
    with world() as up:
        agent = sdk_agent(up)
        base, head = project(tmp_path / "base", agent, FAULTS), project(tmp_path / "head", agent, FAULTS)
        words = ["--max-pairs", "4"]
        _, alone = compare(tmp_path, base, head, *words, "--no-replay")
        live = counted(up)
        up.requests.clear()
        done, found = compare(tmp_path, base, head, *words)
        replayed = counted(up)
    assert done.code == 3, done.err
    assert (alone["pairs"]["free"], found["pairs"]["free"]) == (0, 4)
    assert found["pairs"]["tied"] == 4
    assert {path: 2 * n for path, n in replayed.items()} == live
    assert "4 free" in done.out
    assert found["cost"] is None
    sides = {(run["side"], run["scenario"]): run["output"] for run in found["runs"]}
    assert all(sides["base", s["name"]] == sides["head", s["name"]] for s in FAULTS)


def test_a_head_with_another_prompt_is_run_live_after_one_rehearsal(tmp_path) -> None:
    with world() as up:
        agent = sdk_agent(up)
        base = project(tmp_path / "base", agent)
        head = project(tmp_path / "head", {**agent, "request_template": '{"input": "Please: {prompt}"}'})
        _, found = compare(tmp_path, base, head, "--max-pairs", "3", "--concurrency", "1")
        asked = [request.json()["messages"][0]["content"] for request in up.requests if "chat" in request.path]
    assert (found["pairs"]["free"], found["pairs"]["judged"]) == (0, 3)
    assert Counter(asked) == {"a flight to Oslo": 6, "Please: a flight to Oslo": 6}
    assert found["cost"]["pairs"] == 3  # no reply was BASE's


def test_a_head_that_does_something_else_with_the_same_replies_is_judged_with_these(tmp_path) -> None:
    """Its tool is asked for real, its model is not: a second draw would give HEAD a second chance."""
    with world() as up:
        agent = sdk_agent(up)
        base = project(tmp_path / "base", agent, type="contains", value="Oslo")
        head = project(tmp_path / "head", {**agent, "response_path": "nothing"}, type="contains", value="Oslo")
        _, found = compare(tmp_path, base, head, "--max-pairs", "1")
        assert counted(up) == {"/v1/chat/completions": 2, "/search": 2}
    assert (found["pairs"]["free"], found["pairs"]["lost"]) == (0, 1)
    assert {run["replayed"] for run in found["runs"]} == {2}
    assert found["latency_ms"] is None


def test_a_rule_about_time_is_judged_live(tmp_path) -> None:
    with world() as up:
        config = project(tmp_path / "p", sdk_agent(up), type="latency", max_ms=60_000)
        _, found = compare(tmp_path, config, config, "--max-pairs", "2")
        assert counted(up)["/v1/chat/completions"] == 8
    assert found["pairs"]["free"] == 0
    assert any("whole judges how long it took" in note for note in found["notes"])


def test_a_report_is_base(tmp_path) -> None:
    with world() as up:
        config = project(tmp_path / "p", sdk_agent(up), FAULTS)
        folder = config.parent
        assert flakestorm(folder, "contract", "run", "--seed", "1", "-o", "base.json").code in (0, 1)
        up.requests.clear()
        _, found = compare(folder, folder / "base.json", config)
        assert not up.requests
        assert (found["pairs"]["free"], found["pairs"]["judged"]) == (4, 4)
        document = yaml.safe_load(config.read_text())
        document["contract"]["invariants"] = [{"id": "whole", "type": "contains", "value": "nobody says this"}]
        config.write_text(yaml.safe_dump(document))
        _, found = compare(folder, folder / "base.json", config)
    assert found["pairs"]["free"] == 0  # HEAD is judged by a rule of its own
    assert found["pairs"]["lost"] >= 1


def test_tools_that_are_functions_do_not_run_twice(tmp_path) -> None:
    """Nor does an answer that HEAD puts otherwise bring it another result than its own call."""
    code = (
        "import pathlib, uuid\n\n"
        "def search(to):\n"
        "    with open({log!r}, 'a') as log:\n        log.write(to + '\\n')\n"
        "    return {{'id': str(uuid.uuid4())}}\n\n"
        "TOOLS = {{'search': search}}\n\n"
        "def answer(text):\n    return f\"{says} {{search('Oslo')['id']}}\"\n"
    )
    configs = []
    for side, says in (("base", "found"), ("head", "found"), ("other", "FOUND")):
        folder = tmp_path / side
        agent = {"type": "python", "endpoint": "tied_agent:answer", "tools": "tied_agent:TOOLS"}
        configs.append(project(folder, agent, type="regex", pattern="(?-i:found)"))
        (folder / "tied_agent.py").write_text(code.format(log=str(folder / "asked.txt"), says=says))
    base, head, other = configs
    _, found = compare(tmp_path, base, head, "--max-pairs", "3")
    assert (found["pairs"]["free"], found["pairs"]["judged"]) == (3, 3)
    assert (base.parent / "asked.txt").read_text().splitlines() == ["Oslo"] * 3
    assert not (head.parent / "asked.txt").exists()
    _, found = compare(tmp_path, base, other, "--max-pairs", "3")
    assert (found["pairs"]["free"], found["pairs"]["lost"]) == (0, 3)
    assert (other.parent / "asked.txt").read_text().splitlines() == ["Oslo"] * 3


def test_the_baselines_of_an_equal_head_are_free_too(tmp_path) -> None:
    with world() as up:
        base = project(tmp_path / "base", sdk_agent(up), FAULTS[1:2], type="behavior_unchanged")
        head = project(tmp_path / "head", sdk_agent(up), FAULTS[1:2], type="behavior_unchanged")
        _, found = compare(tmp_path, base, head, "--max-pairs", "2")
        assert counted(up) == {"/v1/chat/completions": 4, "/search": 1}  # BASE's baseline, and its two runs
    assert (found["pairs"]["free"], found["pairs"]["tied"]) == (2, 2)
