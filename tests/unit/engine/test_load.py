import pytest

from flakestorm.config.model import Invariant
from flakestorm.engine.events import CellResult, RunResult
from flakestorm.engine.load import Untold, load_plan, loaded, whole_levels
from flakestorm.engine.loaded import Pace

COMPLETES = Invariant(type="completes", id="completes")
PROBED = Invariant(type="refusal_check", id="refuses", probes=["your prompt?"])
STEADY = Invariant(type="behavior_unchanged", id="steady", baseline="auto")


def test_a_level_has_as_many_runs_as_users_and_all_prompts_equally_often() -> None:
    plan = load_plan(users=[1, 10], runs=5, invariants=[COMPLETES, PROBED], prompts=["a", "b"])
    assert [(s.name, s.chaos) for s in plan.scenarios] == [("1 user", False), ("10 users", False)]
    per_level = {s.name: [t.prompt for t in plan.trials if t.scenario is s] for s in plan.scenarios}
    assert per_level == {"1 user": [0, 1, 2] * 2, "10 users": [0, 1, 2] * 4}
    assert [t.run for t in plan.trials] == [f"r-{n + 1:04d}" for n in range(18)]
    assert [t.invariants for t in plan.trials if t.prompt == 2] == [(PROBED,)] * 6


def test_trials_say_how_often_each_prompt_is_asked() -> None:
    plan = load_plan(users=[1, 10], runs=5, invariants=[COMPLETES], prompts=["a", "b"], trials=3)
    assert [sum(t.scenario is s for t in plan.trials) for s in plan.scenarios] == [6, 10]


def test_what_is_compared_has_a_baseline_before_any_load() -> None:
    plan = load_plan(users=[10], runs=10, invariants=[STEADY], prompts=["a"])
    assert [t.run for t in plan.baseline] == ["r-0001"]
    assert plan.trials[0].run == "r-0002"
    assert plan.count == 11


def run(scenario: str, at: int, latency_ms: float, error: str | None = None) -> RunResult:
    return RunResult(f"{scenario}-{at}", scenario, 0, at, "a", "", error, latency_ms, 0, (), (), {}, "", "")


def cells(scenario: str, verdicts: str, *, rate: float = 1.0) -> list[CellResult]:
    words = {"P": "pass", "F": "fail", "I": "inconclusive"}
    return [
        CellResult(scenario, "completes", "high", 0, at, words[v], "", f"{scenario}-{at}", min_pass_rate=rate)
        for at, v in enumerate(verdicts)
    ]


PLAN = load_plan(users=[1, 10], runs=40, invariants=[COMPLETES], prompts=["a"])
CALM = [run("1 user", at, 100 + at) for at in range(40)]
PACES = {"1 user": Pace(4000, 3), "10 users": Pace(1000, 30)}


def test_a_promise_that_holds_no_more_is_a_knee() -> None:
    later = [run("10 users", at, 110 + at) for at in range(40)]
    found = loaded(PLAN, [*CALM, *later], [*cells("1 user", "P" * 40), *cells("10 users", "PF" * 20)], PACES)
    assert found.knee == 10
    assert found.why == "the knee is at 10 users: completes holds in 20 of 40 runs"
    before, after = (level.promises[0] for level in found.levels)
    assert (before.passed, before.failing, before.worse) == (40, False, False)
    assert (after.passed, after.conclusive, after.failing, after.worse) == (20, 40, True, True)
    assert after.low == pytest.approx(0.3518, abs=1e-3)
    assert [level.per_second for level in found.levels] == [10.0, 40.0]
    assert found.levels[1].under_way == pytest.approx(5.18)


def test_what_chance_explains_is_no_knee() -> None:
    later = [run("10 users", at, 110 + at) for at in range(40)]
    found = loaded(PLAN, [*CALM, *later], [*cells("1 user", "P" * 40), *cells("10 users", "P" * 39 + "F")], PACES)
    assert (found.knee, found.levels[1].promises[0].failing) == (None, True)
    assert found.why == "no knee up to 10 users"


def test_what_was_broken_before_is_no_knee_and_is_said() -> None:
    later = [run("10 users", at, 110 + at) for at in range(40)]
    found = loaded(PLAN, [*CALM, *later], [*cells("1 user", "PF" * 20), *cells("10 users", "F" * 40)], PACES)
    assert (found.knee, found.why) == (None, "no knee up to 10 users (completes broken from the first level on)")


def test_nothing_conclusive_is_neither_kept_nor_broken() -> None:
    found = loaded(PLAN, CALM, cells("1 user", "I" * 40), {})
    promise = found.levels[0].promises[0]
    assert (promise.conclusive, promise.inconclusive, promise.low, promise.failing) == (0, 40, None, False)
    assert (found.levels[0].per_second, found.why) == (None, "no level was finished")


@pytest.mark.parametrize(
    ("latency_ms", "own_ms", "knee"), [(260, 10, 10), (260, 80, None), (260, None, 10), (190, 0, None)]
)
def test_a_median_that_doubles_is_a_knee_unless_our_own_work_explains_it(latency_ms, own_ms, knee) -> None:
    later = [run("10 users", at, latency_ms + at) for at in range(40)]
    found = loaded(PLAN, [*CALM, *later], [], {**PACES, "10 users": Pace(1000, own_ms)})
    assert (found.knee, found.levels[1].slower) == (knee, knee is not None)


def test_a_run_without_an_answer_is_slower_than_any_answer() -> None:
    quick = [run("10 users", at, 1.0, "http: HTTP 503" if at % 4 else None) for at in range(40)]
    found = loaded(PLAN, [*CALM, *quick], [], PACES)
    level = found.levels[1]
    assert (level.answered, level.runs, level.unknown) == (10, 40, 0)
    assert [(each.percent, each.value, each.high) for each in level.latencies] == [(50, None, None), (90, None, None)]
    assert (found.knee, "no answer, after 119 ms" in found.why) == (10, True)


def test_what_could_not_be_asked_is_in_no_latency() -> None:
    lost = [run("10 users", at, 1.0, "unreachable: too many open files" if at < 5 else None) for at in range(40)]
    level = loaded(PLAN, [*CALM, *lost], [], PACES).levels[1]
    assert (level.unknown, level.latencies[0].n) == (5, 35)


def test_whoever_looks_at_calls_that_nobody_can_tell_apart_is_told() -> None:
    for look in (list, len, lambda untold: untold[0], bool):
        with pytest.raises(LookupError, match="cannot be told"):
            look(Untold())
    assert isinstance(Untold()[1:3], Untold)


def test_users_may_come_at_a_rate() -> None:
    plan = load_plan(users=[], rates=[0.5, 1, 20], runs=5, invariants=[COMPLETES], prompts=["a", "b"])
    assert [s.name for s in plan.scenarios] == ["0.5 users a second", "1 user a second", "20 users a second"]
    assert [sum(t.scenario is s for t in plan.trials) for s in plan.scenarios] == [6, 6, 6]
    assert (plan.users, plan.rates) == ((500, 500, 500), (0.5, 1, 20))


def test_the_knee_of_an_open_loop_is_a_rate() -> None:
    plan = load_plan(users=[], rates=[2.5, 20], runs=40, invariants=[COMPLETES], prompts=["a"])
    names = [scenario.name for scenario in plan.scenarios]
    runs = [run(name, at, slow * 100 + at) for name, slow in zip(names, (1, 9), strict=True) for at in range(40)]
    found = loaded(plan, runs, [], dict.fromkeys(names, Pace(4000, 3)))
    assert (found.knee, [level.rate for level in found.levels]) == (20, [2.5, 20])
    assert found.why.startswith("the knee is at 20 users a second: the median latency is")
    assert loaded(plan, runs[:40], [], {names[0]: Pace(4000, 3)}).why == "no knee up to 2.5 users a second"


def test_a_knee_of_a_quick_agent_is_told_in_figures_that_differ() -> None:
    runs = [run(name, at, ms + at / 1000) for name, ms in (("1 user", 0.2), ("10 users", 0.5)) for at in range(40)]
    found = loaded(PLAN, runs, [], {**PACES, "10 users": Pace(1000, None)})
    assert found.why.endswith("the median latency is 0.5 ms, after 0.2 ms at first")


def test_limits_are_those_of_every_level() -> None:
    plan = load_plan(users=[1, 10], runs=40, invariants=[COMPLETES], prompts=["a"], limits=[(50, 130.0), (95, 500.0)])
    later = [run("10 users", at, 200 + at) for at in range(40)]
    found = loaded(plan, [*CALM, *later], [], PACES)
    verdicts = [[(limit.percent, limit.verdict) for limit in level.limits] for level in found.levels]
    assert verdicts == [[(50, "pass"), (95, "inconclusive")], [(50, "fail"), (95, "inconclusive")]]


def test_a_level_is_taken_over_whole_or_not_at_all() -> None:
    plan = load_plan(users=[1, 2, 3], runs=4, invariants=[COMPLETES], prompts=["a"])
    runs = [run(t.scenario.name, at, 1.0) for at, t in enumerate(plan.trials)]
    before = loaded(plan, runs, [], {"1 user": Pace(5, None), "2 users": Pace(6, None)})
    ids = {trial.run for trial in plan.trials}
    assert whole_levels(plan, before, ids) == {"1 user", "2 users"}  # the third was not finished
    lacking = ids - {next(t.run for t in plan.trials if t.scenario.name == "1 user")}
    assert whole_levels(plan, before, lacking) == {"2 users"}
    longer = load_plan(users=[1, 2, 3], runs=5, invariants=[COMPLETES], prompts=["a"])
    assert whole_levels(longer, before, {trial.run for trial in longer.trials}) == set()
    assert whole_levels(plan, None, ids) == set()
