import shlex
from pathlib import Path

from engine_support import run_of
from flakestorm.api import Project
from flakestorm.api.probing import command_line, kind_of, outcome_of, scenario_of
from flakestorm.config import loads
from flakestorm.core.site import Site
from flakestorm.engine.atoms import Ask, Atom
from flakestorm.engine.plan import Trial
from search_support import atoms

CONFIG = 'version: "2.0"\nagent: {endpoint: "http://x"}\ngolden_prompts: [hi]\nadvanced: {seed: 7}\n'


def test_a_reasons_kind_leaves_out_what_differs_from_run_to_run() -> None:
    one = kind_of('3 calls of search at tool/search#2 took 120 ms: "Hello Ada"')
    assert one == kind_of('4 calls of search at tool/search#1 took 99 ms: "Hello Bob"')
    assert kind_of("crash: the agent raised KeyError: 'a' … x.py:3") == kind_of("crash: the agent raised KeyError: 'b'")
    assert kind_of("crash: the agent raised KeyError: x") != kind_of("crash: the agent raised ValueError: x")


def test_the_scenario_is_that_of_run_inject() -> None:
    scenario = scenario_of(frozenset({*atoms("a#1=error"), Atom(Site("llm", "m", 1), "rate_limit")}))
    assert (scenario.name, len(scenario.tool_faults), len(scenario.llm_faults)) == ("injected", 1, 1)
    assert not scenario_of(frozenset()).chaos


def test_a_line_names_the_seed_only_where_the_config_does_not() -> None:
    work = Project(loads(CONFIG), Path("flakestorm.yaml"))
    line = command_line(work, 0, None, atoms("a#1=error"), 7)
    assert shlex.split(line)[1:] == ["run", "-c", "flakestorm.yaml", "--prompt", "0", "--inject", "tool/a#1=error"]
    assert "--seed 8" in command_line(work, 0, "hi there", (), 8)


def test_what_fired_is_told_by_its_fault() -> None:
    asked = atoms("search#1=error")
    trial = Trial("r-0001", scenario_of(asked), 0, "hi", 1, ())
    outcome = outcome_of(run_of(trial, seen=["*"]), Ask(asked))
    assert outcome.fired == asked
    assert not outcome.judged, "no rule was there to judge by"


def test_a_failure_is_of_one_kind_whatever_a_call_said() -> None:
    said = 'search failed (tool/search#1: "{}"), and the answer does not say so: "99 EUR"'
    nothing = 'search failed (tool/search#3: an empty output), and the answer does not say so: "it is 99"'
    assert kind_of(said) == kind_of(nothing)
