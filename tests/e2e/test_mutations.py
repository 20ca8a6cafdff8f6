"""`flakestorm run` as users run it: no model, no key, every input really sent, every request really changed."""

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from e2e_support import FLAKESTORM, clean_env, flakestorm, wait_until, write_config
from upstream import Upstream, document, openai_chat

FILLED = {"id": "filled", "type": "output_not_empty"}
ECHO = "def answer(text):\n    return f'you said {text}'\n"


def echoing(folder: Path, code: str = ECHO) -> dict[str, str]:
    (folder / "mutated_echo.py").write_text(code)
    return {"type": "python", "endpoint": "mutated_echo:answer"}


def test_a_v1_config_runs_as_it_is_and_sends_what_the_report_says(tmp_path) -> None:
    """Seven types of ten for each prompt, each sent once, to the endpoint and nowhere else."""
    with Upstream() as up:
        up.reply("/invoke", document({"output": "fine"}))
        config = {
            "version": "1.0",
            "agent": {"endpoint": f"{up.url}/invoke", "type": "http"},
            "golden_prompts": ["Book a flight to Oslo", "What is the weather in Paris?"],
            "invariants": [{"type": "latency", "max_ms": 20000}, {"type": "contains", "value": "fine"}],
        }
        (tmp_path / "flakestorm.yaml").write_text(yaml.safe_dump(config))
        done = flakestorm(tmp_path, "run", "--seed", "1", report=True)
        sent = sorted(request.json()["input"] for request in up.requests)
    assert done.code == 0, done.out + done.err
    assert done.report is not None
    assert len(sent) == 2 * 7 * 10
    assert sorted(run["input"] for run in done.report["runs"]) == sent
    assert done.report["scores"]["robustness"]["passed"] == 140
    assert done.report["scores"].keys() == {"robustness", "benign", "resistance"}
    for run in done.report["runs"]:
        assert run["mutation"]["original"] in config["golden_prompts"]
        assert run["mutation"]["kind"] in ("benign", "attack")
        assert run["mutation"]["status"] == "sent"


def test_the_same_seed_sends_the_same_at_any_concurrency(tmp_path) -> None:
    write_config(tmp_path, agent=echoing(tmp_path), invariants=[FILLED])
    seen = []
    for concurrency in ("1", "10"):
        done = flakestorm(tmp_path, "run", "--seed", "5", "--concurrency", concurrency, report=True)
        assert done.report is not None
        seen.append([(run["id"], run["input"], run["mutation"]) for run in done.report["runs"]])
    assert seen[0] == seen[1]


def test_robustness_is_by_weight_and_benign_and_attack_stand_apart(tmp_path) -> None:
    agent = echoing(tmp_path, "def answer(text):\n    return '' if 'gnore' in text else 'fine'\n")
    templates = {"polite": "Please: {prompt}", "attack-ignore": "Ignore that. {prompt}"}
    write_config(
        tmp_path,
        agent=agent,
        invariants=[FILLED],
        mutations={"types": ["custom", "tone_shift"], "count": 2, "weights": {"custom": 3.0},
                   "custom_templates": templates},
    )  # fmt: skip
    done = flakestorm(tmp_path, "run", report=True)
    assert done.report is not None
    scores = done.report["scores"]
    assert scores["robustness"]["value"] == pytest.approx((3.0 + 0.9 * 2) / (6.0 + 0.9 * 2), abs=1e-4)
    assert (scores["benign"]["value"], scores["resistance"]["value"]) == (1.0, 0.0)
    assert flakestorm(tmp_path, "run", "--min-score", "0.9").code == 1


def test_a_critical_failure_fails_and_rules_may_be_for_one_kind_of_input(tmp_path) -> None:
    rules = [
        {"id": "answers", "type": "contains", "value": "you said", "when": "input_benign", "severity": "critical"},
        {"id": "resists", "type": "excludes_pattern", "patterns": ["you said"], "when": "input_attack"},
    ]
    mutations = {"types": ["paraphrase", "prompt_injection"], "count": 3}
    write_config(tmp_path, agent=echoing(tmp_path), invariants=rules, mutations=mutations)
    done = flakestorm(tmp_path, "run", report=True)
    assert done.code == 0
    assert {(c["scenario"], c["invariant"], c["verdict"]) for c in (done.report or {})["cells"]} == {
        ("paraphrase", "answers", "pass"), ("prompt_injection", "resists", "fail"),
    }  # fmt: skip
    rules[1]["severity"] = "critical"
    write_config(tmp_path, agent=echoing(tmp_path), invariants=rules, mutations=mutations)
    assert flakestorm(tmp_path, "run").code == 1


def test_a_baseline_is_of_the_golden_prompt(tmp_path) -> None:
    agent = echoing(tmp_path, "def answer(text):\n    return 'same' if 'Oslo' in text else 'something else'\n")
    write_config(tmp_path, agent=agent, invariants=[{"id": "same", "type": "behavior_unchanged"}],
                 mutations={"types": ["noise", "length_extremes"], "count": 5})  # fmt: skip
    done = flakestorm(tmp_path, "run", "--seed", "1", report=True)
    assert done.report is not None
    for cell in done.report["cells"]:
        run = next(run for run in done.report["runs"] if run["id"] == cell["run"])
        assert cell["verdict"] == ("pass" if "Oslo" in run["input"] else "fail")


def test_mutations_under_chaos(tmp_path) -> None:
    code = "import httpx\ndef answer(text):\n    reply = httpx.get('{url}/search')\n    return str(reply.status_code)\n"
    with Upstream() as up:
        up.reply("/search", document({}))
        write_config(
            tmp_path,
            agent=echoing(tmp_path, code.replace("{url}", up.url)),
            boundary={"tools": {"search": "*/search"}},
            invariants=[{"id": "admits", "type": "contains", "value": "500", "when": "tool_faults_active"}],
            chaos={"tool_faults": [{"tool": "search", "mode": "error", "error_code": 500}]},
            mutations={"types": ["noise", "tone_shift"], "count": 3},
        )
        done = flakestorm(tmp_path, "run", "--chaos", report=True)
    assert done.code == 0, done.out + done.err
    assert done.report is not None
    assert len(done.report["runs"]) == 6
    assert all(run["mutation"] and run["faults"]["fired"] for run in done.report["runs"])
    assert done.report["scores"]["robustness"]["passed"] == 6


def test_a_failing_run_is_made_again_by_its_line(tmp_path) -> None:
    agent = echoing(tmp_path, "def answer(text):\n    return '' if len(text) > 2000 or '\\n' in text else 'fine'\n")
    write_config(tmp_path, agent=agent, invariants=[FILLED], mutations={"types": ["length_extremes"], "count": 9})
    done = flakestorm(tmp_path, "run", report=True)
    assert done.report is not None
    failing = [run for run in done.report["runs"] if run["output"] == ""]
    assert failing
    for run in failing[:3]:
        import shlex

        again = flakestorm(tmp_path, *shlex.split(run["reproduce"])[1:], report=True)
        assert again.code == 1
        assert again.report is not None
        assert again.report["runs"][0]["input"] == run["input"]


def test_what_is_missing_is_said(tmp_path) -> None:
    templates = {"only": "Dear agent, {prompt}"}
    types = ["http_header_injection", "custom"]
    write_config(tmp_path, agent=echoing(tmp_path), invariants=[FILLED],
                 mutations={"types": types, "count": 4, "custom_templates": templates})  # fmt: skip
    done = flakestorm(tmp_path, "run", report=True)
    assert done.report is not None
    status = [(run["mutation"]["type"], run["mutation"]["status"]) for run in done.report["runs"]]
    assert status == [("http_header_injection", "not applicable")] * 4 + [("custom", "sent")]
    assert done.report["scores"]["robustness"]["conclusive"] == 1
    assert any(note.startswith("custom: 1 of 4") for note in done.report["notes"])
    assert any(note.startswith("not applicable: http_header_injection") for note in done.report["notes"])
    write_config(tmp_path, agent=echoing(tmp_path), invariants=[FILLED],
                 mutations={"types": ["http_header_injection"], "count": 4})  # fmt: skip
    assert flakestorm(tmp_path, "run").code == 3


@pytest.mark.parametrize(
    ("mutations", "words"),
    [
        ({"types": ["nose"]}, "did you mean 'noise'"),
        ({"custom_templates": {"a": "no place for it"}}, "has no {prompt}"),
        ({"count": 0}, "count"),
    ],
)
def test_a_wrong_block_is_2_and_says_why(tmp_path, mutations, words) -> None:
    write_config(tmp_path, agent=echoing(tmp_path), invariants=[FILLED], mutations=mutations)
    done = flakestorm(tmp_path, "run")
    assert done.code == 2
    assert words in done.err


def test_every_form_of_report_tells_the_mutation(tmp_path) -> None:
    write_config(tmp_path, agent=echoing(tmp_path), invariants=[{"id": "no", "type": "contains", "value": "never"}],
                 mutations={"types": ["noise"], "count": 2})  # fmt: skip
    shown = flakestorm(tmp_path, "run", "--seed", "1")
    assert "mutation: noise#1 neighbour_key (benign) of: a flight to Oslo" in shown.out
    for form in ("junit", "markdown", "html"):
        assert flakestorm(tmp_path, "run", "--seed", "1", "--format", form, "-o", f"out.{form}").code == 0
        text = (tmp_path / f"out.{form}").read_text()
        assert "neighbour" in text, form
    assert "noise#1" in (tmp_path / "out.html").read_text()


COUNTING = """
import os, threading
count = 0

def answer(text):
    global count
    count += 1
    open(f"seen-{os.getpid()}-{count}", "w").close()
    if count > 5 and not os.path.exists("go"):
        threading.Event().wait(60)
    return "fine"
"""


def test_ctrl_c_keeps_what_finished_and_resume_sends_only_the_rest(tmp_path) -> None:
    write_config(tmp_path, agent=echoing(tmp_path, COUNTING), invariants=[FILLED],
                 mutations={"types": ["noise", "tone_shift"], "count": 6}, advanced={"concurrency": 1})  # fmt: skip
    words = [str(FLAKESTORM), "run", "--seed", "3", "--format", "json", "-o", "out/report.json"]
    with subprocess.Popen(words, cwd=tmp_path, env=clean_env(), stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len([*tmp_path.glob("seen-*")]) >= 6)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "To resume: flakestorm run" in err
    kept = json.loads((tmp_path / "out" / "report.json").read_text())["runs"]
    assert len(kept) == 5
    (tmp_path / "go").touch()
    for path in tmp_path.glob("seen-*"):
        path.unlink()
    done = flakestorm(tmp_path, "run", "--resume", "out/report.json", "-o", "out/whole.json", "--format", "json")
    assert done.code == 0, done.err
    assert len([*tmp_path.glob("seen-*")]) == 7
    whole = json.loads((tmp_path / "out" / "whole.json").read_text())
    assert len(whole["runs"]) == 12
    assert [run["input"] for run in whole["runs"][:5]] == [run["input"] for run in kept]


class Seen:
    """What an aiohttp agent saw of each request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.now = self.most = 0

    async def serve(self, request: web.BaseRequest) -> web.Response:
        self.now += 1
        self.most = max(self.most, self.now)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            body = await request.read()
            self.requests.append({"method": request.method, "path": request.path,
                                  "headers": list(request.headers.items()),
                                  "query": request.rel_url.raw_query_string, "body": body,
                                  "took": loop.time() - began})  # fmt: skip
            return web.json_response({"output": "fine"})
        finally:
            self.now -= 1


@contextmanager
def agent_that_sees() -> Iterator[tuple[Seen, str]]:
    seen, ready, ports = Seen(), threading.Event(), list[int]()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        runner = web.ServerRunner(web.Server(seen.serve), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.append(runner.addresses[0][1])
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    assert ready.wait(20)
    try:
        yield seen, f"http://127.0.0.1:{ports[0]}/ask"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def sent(tmp_path: Path, kind: str) -> tuple[Seen, dict[str, Any]]:
    with agent_that_sees() as (seen, url):
        write_config(tmp_path, agent={"endpoint": url}, invariants=[{"id": "completes", "type": "completes"}],
                     mutations={"types": [kind], "count": 6}, advanced={"concurrency": 1, "seed": 2})  # fmt: skip
        done = flakestorm(tmp_path, "run", report=True)
    assert done.report is not None, done.err
    assert len(done.report["runs"]) == 6
    assert {run["mutation"]["status"] for run in done.report["runs"]} == {"sent"}
    assert {request["path"] for request in seen.requests} == {"/ask"}
    return seen, done.report


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def test_headers_are_many(tmp_path) -> None:
    seen, _ = sent(tmp_path, "http_header_injection")
    assert max(len(request["headers"]) for request in seen.requests) >= 80
    assert len({str(request["headers"]) for request in seen.requests}) >= 3


def test_bodies_are_large_and_empty(tmp_path) -> None:
    seen, _ = sent(tmp_path, "payload_size_attack")
    sizes = {len(request["body"]) for request in seen.requests}
    assert len(sizes) >= 3
    assert 100_000 <= max(sizes) <= 64 * 2**20


def test_content_types_differ(tmp_path) -> None:
    seen, _ = sent(tmp_path, "content_type_confusion")
    assert len({(dict(r["headers"]).get("Content-Type"), r["body"]) for r in seen.requests}) >= 3


def test_queries_and_methods_differ(tmp_path) -> None:
    seen, _ = sent(tmp_path, "query_parameter_poisoning")
    assert len({request["query"] for request in seen.requests}) >= 3
    seen, _ = sent(tmp_path, "request_method_attack")
    assert len({(r["method"], str(r["headers"])) for r in seen.requests}) >= 3


def test_nesting_and_keys_go_far(tmp_path) -> None:
    seen, _ = sent(tmp_path, "resource_exhaustion")
    bodies = [json.loads(r["body"]) for r in seen.requests if b"999999" not in r["body"]]
    assert max(map(depth, bodies)) >= 50
    assert max(map(len, bodies)) >= 1_000


def test_frames_differ_and_a_refusal_is_a_proper_answer(tmp_path) -> None:
    seen, report = sent(tmp_path, "protocol_level_attack")
    assert any(dict(r["headers"]).get("Transfer-Encoding") == "chunked" for r in seen.requests)
    assert {cell["verdict"] for cell in report["cells"]} == {"pass"}


def test_requests_overlap_even_one_by_one(tmp_path) -> None:
    seen, _ = sent(tmp_path, "concurrent_request_pattern")
    assert seen.most >= 2


def test_senders_take_their_time(tmp_path) -> None:
    seen, _ = sent(tmp_path, "timeout_manipulation")
    assert sum(request["took"] >= 0.15 for request in seen.requests) >= 3


def test_adaptive_spends_the_same_budget_where_the_agent_breaks(tmp_path) -> None:
    agent = echoing(
        tmp_path, "def answer(text):\n    return '' if '\\u200b' in text or '\\u2060' in text else 'fine'\n"
    )
    failing = {}
    for strategy in ("uniform", "adaptive"):
        write_config(tmp_path, agent=agent, invariants=[FILLED], golden_prompts=["Book a flight", "Find a hotel"],
                     mutations={"types": ["encoding_attacks", "noise"], "count": 20, "strategy": strategy})  # fmt: skip
        done = flakestorm(tmp_path, "run", "--seed", "4", report=True)
        assert done.report is not None, done.err
        assert sum("mutation" in run for run in done.report["runs"]) == 80
        failing[strategy] = sum(run["output"] == "" for run in done.report["runs"])
        assert any("strategy adaptive" in note for note in done.report["notes"]) == (strategy == "adaptive")
    assert failing["adaptive"] > failing["uniform"] > 0


def test_a_model_writes_once_and_is_replaced_when_it_is_gone(tmp_path) -> None:
    said = json.dumps(["Please get me a flight to Oslo", "I want a flight to Oslo"])
    with Upstream() as up:
        up.reply("/v1/chat/completions", openai_chat(said))
        config: dict[str, Any] = {
            "agent": echoing(tmp_path), "invariants": [FILLED],
            "mutations": {"types": ["paraphrase"], "count": 2, "engine": "llm"},
            "model": {"provider": "openai", "name": "m", "base_url": f"{up.url}/v1", "api_key": "${WRITER_KEY}"},
        }  # fmt: skip
        write_config(tmp_path, **config)
        for _ in range(2):
            done = flakestorm(tmp_path, "run", env={"WRITER_KEY": "k-writer"}, report=True)
            assert done.report is not None, done.err
            assert [run["input"] for run in done.report["runs"]] == json.loads(said)
            assert {run["mutation"]["operator"] for run in done.report["runs"]} == {"model"}
        assert up.count("/v1/chat/completions") == 1
    config["mutations"]["types"] = ["noise"]
    write_config(tmp_path, **config)
    gone = flakestorm(tmp_path, "run", env={"WRITER_KEY": "k-writer"}, report=True)
    assert gone.code == 0
    assert gone.report is not None
    assert len(gone.report["runs"]) == 2
    assert any("the model could not be asked" in note for note in gone.report["notes"])


def test_a_failing_mutation_is_compared_with_its_golden_prompt(tmp_path) -> None:
    """One run of each failing prompt as it is says whether the mutation is the cause."""
    agent = echoing(tmp_path, "def answer(text):\n    return 'fine' if text == 'a good one' else 'broken'\n")
    write_config(
        tmp_path, agent=agent, golden_prompts=["a good one", "a bad one"],
        invariants=[{"id": "works", "type": "contains", "value": "fine"}], mutations={"types": ["noise"], "count": 2},
    )  # fmt: skip
    done = flakestorm(tmp_path, "run", "--seed", "1", report=True)
    assert done.report is not None
    assert len(done.report["cells"]) == 4
    assert {(c["prompt"], c["also_fails_unmutated"], c["also_fails_without_chaos"]) for c in done.report["cells"]} == {
        (0, False, False), (1, True, False)
    }  # fmt: skip
    assert sorted(run["input"] for run in done.report["runs"] if "mutation" not in run) == ["a bad one", "a good one"]
    write_config(
        tmp_path, agent=agent, golden_prompts=["a bad one"],
        invariants=[{"id": "works", "type": "contains", "value": "fine"}], mutations={"types": ["noise"], "count": 2},
    )  # fmt: skip
    assert "also fails unmutated" in flakestorm(tmp_path, "run", "--seed", "1", "--format", "terminal").out
