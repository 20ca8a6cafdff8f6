"""Reports to render: an ordinary one, a large one, and one whose every string attacks its reader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flakestorm.core.ledger import Canary, Firing
from flakestorm.core.site import Site
from flakestorm.engine.events import (
    CellResult,
    FaultAt,
    FaultTally,
    Finding,
    InvariantInfo,
    Report,
    RunResult,
    ScenarioInfo,
    Score,
)

HOSTILE = (
    '</script><script>window.pwned=1</script>"\'><img src=x onerror="window.pwned=1"><svg onload=window.pwned=1>'
    "{{7*7}}${7*7}<!--<script> \x1b[31mRED\x1b]0;title\x07 \u202egnp.exe\u202c \u2028 \ud800 \x00 [bold]markup[/bold]"
)
"""Markup, script ends, template syntax, terminal escapes, bidirectional overrides, a lone surrogate, a NUL."""

PROMPTS = ("Book the cheapest flight to Oslo on 12 May.", "I need to be in Lisbon on 3 June.")

INVARIANTS = (
    InvariantInfo("always-answers", "completes", "high", "The agent gives an answer, whatever breaks."),
    InvariantInfo("no-false-booking", "excludes_pattern", "critical", "Never claims a booking.", "tool_faults_active"),
    InvariantInfo("whole-sentences", "regex", "medium"),
    InvariantInfo("fast", "latency", "low"),
)


def sample() -> Report:
    """Every kind of square: passed, partly failed, failed, inconclusive, not applicable."""
    scenarios = (
        ScenarioInfo("no-chaos"),
        ScenarioInfo("search-down", ("tool/search_flights=error:503",)),
        ScenarioInfo("booking-times-out", ("tool/book_flight=timeout:300",)),
        ScenarioInfo("model-cut-short", ("llm/*=truncated_response:6",)),
    )
    table = {
        ("no-chaos", "always-answers"): "PP", ("no-chaos", "whole-sentences"): "PP", ("no-chaos", "fast"): "PF",
        ("search-down", "always-answers"): "PP", ("search-down", "no-false-booking"): "PP",
        ("search-down", "whole-sentences"): "PP", ("search-down", "fast"): "PP",
        ("booking-times-out", "always-answers"): "PI", ("booking-times-out", "no-false-booking"): "FF",
        ("booking-times-out", "whole-sentences"): "PF", ("booking-times-out", "fast"): "FP",
        ("model-cut-short", "always-answers"): "II", ("model-cut-short", "whole-sentences"): "II",
        ("model-cut-short", "fast"): "II",
    }  # fmt: skip
    runs, cells = [], []
    for scenario in scenarios:
        for prompt, text in enumerate(PROMPTS):
            run = _run(f"r-{len(runs) + 1:04}", scenario, prompt, text)
            runs.append(run)
            for invariant in INVARIANTS:
                letters = table.get((scenario.name, invariant.id))
                if letters:
                    cells.append(_cell(scenario.name, invariant, prompt, letters[prompt], run.id))
    return Report(
        command="contract run",
        verdict="fail",
        exit_code=1,
        headline="no-false-booking (critical) failed in booking-times-out: 2 of 2 runs claimed a booking.",
        seed=42,
        started_at="2026-05-04T10:00:00Z",
        duration_ms=8123.4,
        scores={"contract": Score(71.43, 55.1, 83.2, 13, 19, 7, critical_failed=True)},
        cells=tuple(cells),
        runs=tuple(runs),
        scenarios=scenarios,
        invariants=INVARIANTS,
        prompts=PROMPTS,
        notes=("model-cut-short: no planned fault fired in 2 of 2 runs.",),
        config="flakestorm.yaml",
        agent="http http://127.0.0.1:8000/invoke",
        version="3.0.0",
    )


def shrunk() -> Report:
    """Of a `shrink`: three faults before, one in its second run, which shows the smallest form."""
    line = "flakestorm run --prompt 0 --inject 'tool/search_flights#1=error:503'"
    schedule = (FaultAt("tool/search_flights#1", "error", "error:503"),)
    finding = Finding(schedule, "no-false-booking", "critical", "it said so", 0, "r-0002", line)
    given, smallest = (replace(run, tape=f"/s/smallest.tapes/{run.id}.tape") for run in sample().runs[:2])
    return replace(empty(), command="shrink", runs=(replace(given, planned=3), smallest), findings=(finding,))


def empty() -> Report:
    """Nothing was judged."""
    return Report("contract run", "inconclusive", 3, "The agent could not be reached.", 0, "", 3.0, {}, (), ())


def hostile() -> Report:
    """The sample with `HOSTILE` in every field an agent, a model, a tool or a config can write."""
    base = sample()
    named = {s.name: f"{s.name} {HOSTILE}" for s in base.scenarios}
    ids = {i.id: f"{i.id} {HOSTILE}" for i in base.invariants}
    return replace(
        base,
        headline=HOSTILE,
        command=f"contract run {HOSTILE}",
        started_at=HOSTILE,
        scores={f"contract {HOSTILE}": base.scores["contract"]},
        scenarios=tuple(
            ScenarioInfo(named[s.name], (HOSTILE,), (FaultTally(HOSTILE, 2, 0, 1, 1, 0),)) for s in base.scenarios
        ),
        invariants=tuple(replace(i, id=ids[i.id], type=HOSTILE, description=HOSTILE, when=HOSTILE) for i in INVARIANTS),
        cells=tuple(
            replace(c, scenario=named[c.scenario], invariant=ids[c.invariant], reason=HOSTILE) for c in base.cells
        ),
        runs=tuple(
            replace(
                r,
                scenario=named[r.scenario],
                input=HOSTILE,
                output=HOSTILE,
                error=HOSTILE if r.error else None,
                fired=(Firing(Site("tool", HOSTILE, 1), HOSTILE, "tool", HOSTILE),),
                masked=(Firing(Site("llm", HOSTILE, 1), HOSTILE, "llm", HOSTILE),),
                impossible=(Firing(Site("tool", HOSTILE, 1), HOSTILE, "tool", HOSTILE),),
                idle=(Firing(Site("tool", HOSTILE, 1), HOSTILE, "tool", HOSTILE),),
                calls={HOSTILE: 1},
                tape=HOSTILE,
                reproduce=f"flakestorm run {HOSTILE}",
                seen=(HOSTILE,),
            )
            for r in base.runs
        ),
        prompts=(HOSTILE, HOSTILE),
        notes=(HOSTILE,),
        config=HOSTILE,
        agent=HOSTILE,
        version=HOSTILE,
    )


def large(scenarios: int = 100, invariants: int = 50) -> Report:
    """A map of that size, one run per scenario; every seventh cell fails."""
    axes = tuple(InvariantInfo(f"invariant-{n:02}", "regex", "medium") for n in range(invariants))
    rows = tuple(ScenarioInfo(f"scenario-{n:03}", ("tool/search=error:503",)) for n in range(scenarios))
    runs = tuple(_run(f"r-{n:04}", row, 0, PROMPTS[0]) for n, row in enumerate(rows))
    cells = tuple(
        _cell(row.name, axis, 0, "F" if (n * invariants + m) % 7 == 0 else "P", runs[n].id)
        for n, row in enumerate(rows)
        for m, axis in enumerate(axes)
    )
    return replace(sample(), cells=cells, runs=runs, scenarios=rows, invariants=axes)


def exchanges(text: str = "Your flight NW-118 to Oslo is booked.", name: str = "book_flight") -> list[dict[str, Any]]:
    """A run's exchanges in the tape's public shape: two model turns around a tool call that a fault broke."""
    ask = {"model": "demo-1", "messages": [{"role": "user", "content": text}]}
    reply = {"status": 200, "stream": False, "chunks": ["{}"], "text": text, "tool_calls": [], "finish": "stop"}
    call = {"id": "call_1", "name": name, "arguments": '{"flight": "NW-118"}'}
    return [
        {
            "site": "llm/demo-1#1", "kind": "llm", "name": "demo-1", "lane": "",
            "request": {"method": "POST", "url": "http://127.0.0.1:9/v1/chat/completions", "body": ask},
            "reply": {**reply, "text": "", "tool_calls": [call], "finish": "tool_calls",
                      "usage": {"input": 31, "output": 12}},
            "world": None, "faults": [], "t_ms": 4.2, "duration_ms": 21.0,
        },
        {
            "site": f"tool/{name}#1", "kind": "tool", "name": name, "lane": "",
            "request": {"method": "POST", "url": "http://127.0.0.1:9/bookings", "body": {"flight": "NW-118"}},
            "reply": {"status": 0, "stream": False, "chunks": [], "text": "", "tool_calls": [], "finish": None},
            "world": {"status": 201, "stream": False, "chunks": [f'{{"says": "{text}"}}'], "text": "", "usage": None},
            "faults": [{"site": f"tool/{name}#1", "mode": "timeout", "detail": "no reply in 300 ms"}],
            "sent": 1, "error": f"timeout: {text}", "t_ms": 26.0, "duration_ms": 301.5,
        },
        {
            "site": "llm/demo-1#2", "kind": "llm", "name": "demo-1", "lane": "",
            "request": {"method": "POST", "url": "http://127.0.0.1:9/v1/chat/completions", "body": text * 200},
            "reply": {**reply, "stream": True, "chunks": ["a", "b", "c"], "usage": {"input": 60, "output": 14}},
            "world": None, "faults": [], "t_ms": 330.0, "duration_ms": 48.0,
        },
    ]  # fmt: skip


def _run(name: str, scenario: ScenarioInfo, prompt: int, text: str) -> RunResult:
    fault = scenario.faults[0] if scenario.faults else ""
    hit = fault.startswith("tool/")
    fired = (Firing(Site("tool", fault[5:].partition("=")[0], 1), fault.partition("=")[2], "tool", "no reply"),)
    return RunResult(
        id=name,
        scenario=scenario.name,
        prompt=prompt,
        trial=1,
        input=text,
        output="" if scenario.name == "search-down" and prompt else "Your flight NW-118 to Oslo is booked.",
        error="timeout: no answer in 30000 ms" if scenario.name == "search-down" and prompt else None,
        latency_ms=93.1,
        planned=len(scenario.faults),
        fired=fired if hit else (),
        masked=(),
        calls={"llm": 2, "tool": 1, "mcp": 0, "http": 0},
        tape=f"tapes/{name}.tape",
        reproduce=f"flakestorm run --seed 42 --prompt {prompt} --inject tool/book_flight#1=timeout:300",
        seen=("search_flights", "book_flight"),
        canaries=(Canary("FS1C644F2EC9", "Obey."),) if hit else (),
    )


def _cell(scenario: str, invariant: InvariantInfo, prompt: int, letter: str, run: str) -> CellResult:
    verdict, reason = {
        "P": ("pass", ""),
        "F": ("fail", 'found (?i)is booked in "Your flight NW-118 to Oslo is booked."'),
        "I": ("inconclusive", "no planned fault fired: llm/*=truncated_response:6"),
    }[letter]
    also = letter == "F" and invariant.id == "fast"
    return CellResult(scenario, invariant.id, invariant.severity, prompt, 1, verdict, reason, run, also)  # type: ignore[arg-type]  # verdict comes out of a table
