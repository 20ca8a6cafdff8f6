"""All invariants of a scenario are judged on the same runs, and the same seed gives the same faults."""

import pytest

from e2e_support import PROGRAMS, flakestorm, sdk_agent, world, write_config
from upstream import Upstream, document

INVARIANTS = [
    {"id": "says", "type": "contains", "value": "hello"},
    {"id": "filled", "type": "output_not_empty"},
    {"id": "quick", "type": "latency", "max_ms": 20000},
    {"id": "whole", "type": "completes"},
]


def test_4_invariants_5_scenarios_4_prompts_are_exactly_20_runs(tmp_path) -> None:
    faults = [{"tool": "search", "mode": mode} for mode in ("error", "malformed", "slow", "timeout")]
    matrix = [{"name": "calm"}, *({"name": f["mode"], "tool_faults": [f]} for f in faults)]
    with Upstream() as up:
        up.reply("/invoke", document({"output": "hello"}))
        write_config(
            tmp_path,
            agent={"endpoint": f"{up.url}/invoke"},
            golden_prompts=["a", "b", "c", "d"],
            contract={"name": "count", "invariants": INVARIANTS, "chaos_matrix": matrix},
        )
        done = flakestorm(tmp_path, "contract", "run", report=True)
        assert up.count("/invoke") == 20
    assert done.report is not None
    assert len(done.report["cells"]) == 4 * 5 * 4


@pytest.mark.parametrize("repeats", [20])
def test_the_same_seed_gives_the_same_fired_faults_at_any_concurrency(tmp_path, repeats) -> None:
    """A Python agent in process, so that many repeats are cheap; faults fire by chance, keyed by the seed."""
    (tmp_path / "wandering.py").write_text((PROGRAMS / "wandering_agent.py").read_text())
    with world() as up:
        up.reply("/a", document({"a": 1}))
        up.reply("/b", document({"b": 1}))
        write_config(
            tmp_path,
            agent={"type": "python", "endpoint": "wandering:agent"},
            golden_prompts=[f"{up.url} prompt {n}" for n in range(6)],
            boundary={"tools": {"a": "*/a", "b": "*/b"}},
            contract={
                "name": "luck",
                "invariants": [{"id": "whole", "type": "completes"}],
                "chaos_matrix": [
                    {
                        "name": "luck",
                        "tool_faults": [
                            {"tool": "a", "mode": "error", "probability": 0.5},
                            {"tool": "*", "mode": "malformed", "probability": 0.3},
                        ],
                    }
                ],
            },
        )
        seen = set()
        for n in range(repeats):
            done = flakestorm(
                tmp_path, "contract", "run", "--seed", "7", "--concurrency", "1" if n % 2 else "10", report=True
            )
            assert done.report is not None, done.err
            fired = [[(f["site"], f["mode"]) for f in run["faults"]["fired"]] for run in done.report["runs"]]
            seen.add(str(fired))
    assert len(seen) == 1
    assert "error" in next(iter(seen))
    assert "malformed" in next(iter(seen))


def test_launched_agents_have_the_same_faults_too(tmp_path) -> None:
    scenario = {"name": "luck", "llm_faults": [{"mode": "rate_limit", "probability": 0.5}]}
    with world() as up:
        write_config(
            tmp_path,
            agent=sdk_agent(up),
            golden_prompts=["a", "b", "c"],
            boundary={"tools": {"search": "*/search"}},
            contract={"name": "x", "invariants": [INVARIANTS[3]], "chaos_matrix": [scenario]},
        )
        fired = []
        for concurrency in ("1", "3"):
            done = flakestorm(tmp_path, "contract", "run", "--seed", "5", "--concurrency", concurrency, report=True)
            assert done.report is not None, done.err
            fired.append([run["faults"]["fired"] for run in done.report["runs"]])
    assert fired[0] == fired[1]
    assert any(fired[0])
