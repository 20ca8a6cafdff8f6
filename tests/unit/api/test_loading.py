import asyncio
import resource
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine_support import run_of
from flakestorm import api
from flakestorm.api import loading
from flakestorm.config.model import Invariant
from flakestorm.engine.load import load_plan
from flakestorm.engine.loaded import LevelResult, Loaded, Pace
from flakestorm.errors import ConfigError, Misuse

CONFIG = """
version: "2.0"
agent: {type: python, endpoint: "crowded:answer", reset_function: "crowded:reset"}
golden_prompts: [hi]
load: {users: [1, 6], runs: 6}
"""
AGENT = """
import threading
everybody, crowd, resets = threading.Barrier(6), [], []

def reset():
    resets.append(1)

def answer(text):
    crowd.append(threading.get_ident())
    if len(crowd) > 6:  # the second level
        everybody.wait(20)
    return text
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crowded.py").write_text(AGENT)

    def make(rules: str) -> api.Project:
        (tmp_path / "flakestorm.yaml").write_text(CONFIG + rules)
        return api.load()

    return make


def test_users_of_an_agent_in_this_process_ask_together_and_nothing_is_reset(project) -> None:
    report = project("invariants: [{type: completes}, {type: max_calls, limit: 0}]").under_load()
    assert (report.verdict, report.exit_code, report.command) == ("pass", 0, "load")
    assert [(level.users, level.answered) for level in report.load.levels] == [(1, 6), (6, 6)]
    assert report.load.levels[1].own_ms is None
    assert [note for note in report.notes if "not reset" in note]
    assert report.config == "flakestorm.yaml"
    assert threading.active_count() < 20


def test_the_contracts_rules_come_first(project) -> None:
    rules = (
        "invariants: [{type: completes, id: top}]\n"
        "contract: {name: c, invariants: [{type: completes, id: own}], chaos_matrix: [{name: calm}]}"
    )
    report = project(rules).under_load(users=[1], runs=1)
    assert {cell.invariant for cell in report.cells} == {"own"}


def test_a_rule_for_chaos_only_leaves_nothing_to_judge(project) -> None:
    report = project("invariants: [{type: completes, when: any_chaos_active}]").under_load(users=[1], runs=1)
    assert (report.verdict, report.exit_code) == ("inconclusive", 3)


def test_nothing_to_judge_by(project) -> None:
    with pytest.raises(ConfigError, match="needs an invariant"):
        project("").under_load()
    http = project("invariants: [{type: max_calls, limit: 1}]")
    text = Path("flakestorm.yaml").read_text().replace('type: python, endpoint: "crowded:answer"', "endpoint: http://x")
    Path("flakestorm.yaml").write_text(text)
    assert http is not None
    with pytest.raises(ConfigError, match="looks at the answer"):
        api.load().under_load()


@pytest.mark.parametrize("options", [api.Options(concurrency=2), api.Options(early=True)])
def test_what_has_no_place_here(project, options: api.Options) -> None:
    with pytest.raises(Misuse, match="load knows no"):
        project("invariants: [{type: completes}]").under_load(options)


@pytest.mark.parametrize("users", [[2, 1], [0], [501]])
def test_levels_that_make_no_sense(project, users: list[int]) -> None:
    with pytest.raises(Misuse, match="load: "):
        project("invariants: [{type: completes}]").under_load(users=users)


def test_there_is_room_for_every_user_or_it_is_said(project, monkeypatch) -> None:
    limits, granted = [(256, 4096)], []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: granted.append(wanted))
    made = project("invariants: [{type: completes}]")
    Path("crowded.py").write_text("def reset(): ...\ndef answer(text):\n    return text\n")
    made.under_load(users=[1, 100], runs=1)
    assert granted == [(500, 4096)]
    limits.append((256, 400))
    with pytest.raises(Misuse, match="100 users need 500 open files, and this system allows 400"):
        made.under_load(users=[1, 100], runs=1)
    assert made.under_load(api.Options(dry_run=True), users=[1, 100], runs=1).planned == 101


def test_new_users_come_whether_or_not_others_have_been_answered(project) -> None:
    made = project("invariants: [{type: completes}]")
    Path("crowded.py").write_text(AGENT.replace("len(crowd) > 6", "True"))  # nobody is answered before six have come
    report = made.under_load(rates=[200], runs=6)
    (level,) = report.load.levels
    assert (report.exit_code, level.rate, level.answered) == (0, 200, 6)
    assert report.runs[0].reproduce == f"flakestorm load -c flakestorm.yaml --rates 200 --seed {report.seed}"


def test_what_the_config_says_of_rates_is_taken_unless_users_are_asked_for(project) -> None:
    project("invariants: [{type: completes}]")
    Path("flakestorm.yaml").write_text(Path("flakestorm.yaml").read_text().replace("runs: 6", "runs: 6, rates: [300]"))
    Path("crowded.py").write_text("def reset(): ...\ndef answer(text):\n    return text\n")
    made = api.load()
    assert [level.rate for level in made.under_load().load.levels] == [300]
    assert [level.rate for level in made.under_load(users=[2]).load.levels] == [None]
    with pytest.raises(Misuse, match="and not both"):
        made.under_load(users=[2], rates=[3])
    with pytest.raises(Misuse, match="the rates must rise"):
        made.under_load(rates=[3, 2])


async def test_whoever_has_no_room_to_ask_waits_all_the_same(monkeypatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr(loading, "time", SimpleNamespace(monotonic=lambda: now_s[0], process_time=lambda: 0.0))
    plan = load_plan(users=[], rates=[10], runs=2, invariants=[Invariant(type="completes")], prompts=["a"])
    first, second = plan.trials
    crowd = loading._Crowd(plan, apart=True)
    assert crowd.holds(first) == 0
    await crowd.begins(first)
    assert crowd.holds(second) == pytest.approx(0.1)
    now_s[0] = 100.35  # a quarter of a second after the second one has come
    assert crowd.holds(second) < 0
    await crowd.begins(second)
    for trial, late_ms in ((first, 0), (second, 250)):
        found = run_of(trial)
        seen = crowd.viewed(trial, replace(found.view, latency_ms=50.0))
        ended = crowd.ended(replace(found, run=replace(found.run, latency_ms=50.0)))
        assert (seen.latency_ms, ended.run.latency_ms) == pytest.approx((50 + late_ms,) * 2)
    assert crowd.paces["10 users a second"].took_ms == pytest.approx(100 + 300)


def test_what_a_level_was_by_the_clock_is_known_until_it_is_made_again() -> None:
    plan = load_plan(users=[1, 2], runs=2, invariants=[Invariant(type="completes")], prompts=["a"])
    levels = [
        LevelResult(s.name, 1, 2, 2, 0, took_ms, 1.0, 1.0, 7.0, (), ())
        for s, took_ms in zip(plan.scenarios, (5.0, None), strict=True)
    ]
    crowd = loading._Crowd(plan, apart=True, before=Loaded(tuple(levels), None, ""))
    assert crowd.paces == {"1 user": Pace(5.0, 7.0)}
    asyncio.run(crowd.begins(plan.trials[0]))
    assert crowd.paces == {}


def test_what_is_wrong_is_known_before_anything_is_run(project, monkeypatch) -> None:
    made = project("invariants: [{type: completes}]")
    loading.check_load(made)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    with pytest.raises(Misuse, match="6 users need 218 open files"):
        loading.check_load(made)
