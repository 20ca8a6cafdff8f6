"""When runs are started, against a clock that is turned by hand, and against a provider that counts."""

import heapq
import json
from dataclasses import dataclass, field
from math import inf

import pytest

from flakestorm.config.model import RateLimit
from flakestorm.core.answer import AgentError
from flakestorm.core.site import Site
from flakestorm.engine.pacing import IN_VAIN, Met, Paced, Pacing, Refusal, limited, paced_by, starved, together
from flakestorm.tape.model import Exchange, Recorded


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def paced(**limit: int) -> tuple[Pacing, Clock]:
    clock = Clock()
    return Pacing(clock, RateLimit(**limit)), clock


def refusal(wait_ms: float | None = 1000, call: int = 1) -> Refusal:
    return Refusal(f"llm/gpt#{call}", 429, wait_ms)


def starts(pacing: Pacing, clock: Clock, run: str, *, calls: int = 0, tokens: int | None = 0) -> float:
    """Wait until this run may be started, start it and end it at once; gives when it was started."""
    while wait_s := pacing.wait_s(0, 10):
        clock.now_s += wait_s
    at = clock.now_s
    pacing.started(run)
    for _ in range(calls):
        pacing.sent(run)
    pacing.ended(run, tokens=tokens, through=True)
    return at


def test_it_is_quiet_until_something_is_to_be_kept_or_was_refused() -> None:
    assert not paced(calls_per_minute=60)[0].quiet
    assert not paced(tokens_per_minute=60)[0].quiet
    pacing, _ = paced()
    assert pacing.quiet
    pacing.started("r")
    pacing.refused("r", refusal())
    assert not pacing.quiet


def test_nothing_holds_back_what_nobody_limits() -> None:
    pacing, clock = paced()
    assert [starts(pacing, clock, f"r{n}", calls=5) for n in range(5)] == [0.0] * 5
    assert (pacing.paced, pacing.paced.lines) == (Paced(), ())


def test_calls_are_spread_over_the_minute_and_a_run_counts_for_one_at_least() -> None:
    pacing, clock = paced(calls_per_minute=60)
    assert [starts(pacing, clock, f"r{n}") for n in range(4)] == [0, 1, 2, 3]
    assert starts(pacing, clock, "r4", calls=5) == 4
    assert starts(pacing, clock, "r5") == 9  # what the run before has used is paid for first
    assert pacing.paced.spaced_ms == 9000
    assert pacing.paced.lines == ("starts waited 9.0 s in all for advanced.rate_limit",)


def test_time_that_nobody_used_is_not_saved_up() -> None:
    pacing, clock = paced(calls_per_minute=60)
    starts(pacing, clock, "r0")
    clock.now_s = 100
    assert [starts(pacing, clock, f"r{n}") for n in (1, 2)] == [100, 101]


def test_a_start_is_charged_what_runs_use_on_average() -> None:
    pacing, clock = paced(calls_per_minute=60)
    starts(pacing, clock, "r0", calls=4)
    pacing.wait_s(0, 10)
    clock.now_s = 4
    pacing.started("r1")  # still under way
    assert pacing.wait_s(1, 10) == 4
    pacing.sent("r1", 6)
    assert pacing.wait_s(1, 10) == 6
    pacing.ended("r1", tokens=None, through=True)
    assert pacing.wait_s(0, 10) == 6


def test_tokens_are_spread_as_soon_as_it_is_known_how_many_a_run_takes() -> None:
    pacing, clock = paced(tokens_per_minute=6000)
    pacing.started("r0")
    assert pacing.wait_s(1, 10) == inf  # one by one until then
    pacing.ended("r0", tokens=300, through=True)
    assert pacing.wait_s(0, 10) == 3
    clock.now_s = 3
    pacing.started("r1")
    assert pacing.wait_s(1, 10) == 3
    pacing.ended("r1", tokens=None, through=True)
    assert "the tokens of 1 runs are not known" in pacing.paced.lines[-1]


def test_a_refusal_holds_starts_back_for_as_long_as_it_asks() -> None:
    pacing, clock = paced()
    pacing.started("r0")
    pacing.refused("r0", refusal(2500))
    pacing.ended("r0", tokens=None, through=False)
    assert pacing.wait_s(0, 10) == 2.5
    assert pacing.news() == (
        "the world, and no fault, refused llm/gpt#1 for the rate (429): no run is started for 2.5 s, and fewer at once "
        "from then on"
    )
    assert pacing.news() == ""
    clock.now_s = 1
    assert pacing.wait_s(0, 10) == 1.5  # asked again, because a run has ended
    clock.now_s = 2.5
    assert pacing.wait_s(0, 10) == 0
    assert pacing.paced == Paced(refusals=1, runs=1, holds=1, held_ms=2500, least=1)
    assert pacing.paced.lines == (
        "the world refused 1 call in 1 run for the rate (no fault did); starts waited 1 time for that, 2.5 s in all; "
        "for a time, no more than 1 at once were let begin",
    )
    pacing.fresh()
    assert pacing.paced == Paced()


@pytest.mark.parametrize(("most_ms", "held_s"), [(60_000, 60), (500, 0.5), (0, 0)])
def test_no_refusal_is_waited_for_longer_than_the_config_says(most_ms: int, held_s: float) -> None:
    pacing, _ = paced(max_hold_ms=most_ms)
    pacing.started("r0")
    pacing.refused("r0", refusal(3_600_000))
    assert pacing.wait_s(0, 10) == held_s


def test_refusals_that_name_no_time_are_given_longer_ones_from_time_to_time() -> None:
    pacing, clock = paced()
    found = []
    for n in range(2):
        pacing.started(f"r{n}")
        pacing.refused(f"r{n}", refusal(None))
        found.append(pacing.wait_s(0, 10))
        clock.now_s += found[-1]
    assert found == [1, 2]


def test_what_does_not_come_back_is_not_waited_for_again_and_again() -> None:
    """A quota that is used up refuses every run, and each would be held back for a minute."""
    pacing, clock = paced()
    at = []
    for n in range(20):
        while wait_s := pacing.wait_s(0, 10):
            clock.now_s += wait_s
        at.append(clock.now_s)
        pacing.started(f"r{n}")
        pacing.refused(f"r{n}", refusal(3_600_000))
        pacing.ended(f"r{n}", tokens=None, through=False)
    assert at[: IN_VAIN + 2] == [0, 60, 120, 180, 180]
    assert at[-1] == 180
    assert (pacing.paced.refusals, pacing.paced.runs) == (20, 20)
    pacing.started("well")
    pacing.ended("well", tokens=None, through=True)
    pacing.refused("late", refusal(1000))
    assert pacing.wait_s(0, 10) == 1


def test_fewer_runs_are_under_way_after_a_refusal_and_more_again_when_they_get_through() -> None:
    pacing, _ = paced()
    for n in range(8):
        pacing.started(f"r{n}")
    for n in range(8):  # they were begun too quickly for one and the same reason
        pacing.refused(f"r{n}", refusal(0))
        pacing.ended(f"r{n}", tokens=None, through=True)
    assert pacing.paced.least == 4
    assert [pacing.wait_s(under_way, 8) for under_way in (0, 3, 4, 7)] == [0, 0, inf, inf]
    for n in range(4):
        pacing.started(f"s{n}")
        pacing.ended(f"s{n}", tokens=None, through=True)
    assert [pacing.wait_s(under_way, 8) for under_way in (3, 4)] == [0, inf]  # 4 + 4 times less than 1/4
    pacing.started("t")
    pacing.ended("t", tokens=None, through=True)
    assert [pacing.wait_s(under_way, 8) for under_way in (4, 5)] == [0, inf]
    pacing.started("u")
    pacing.refused("u", refusal(0))
    pacing.ended("u", tokens=None, through=True)
    assert [pacing.wait_s(under_way, 8) for under_way in (0, 1)] == [0, inf]


@dataclass
class Provider:
    """Grants `per_s` calls in each second; who asks too often is told when the next second begins."""

    per_s: int
    asked: list[float] = field(default_factory=list)
    refused: int = 0

    def ask(self, now_s: float) -> float:
        """0, or how many milliseconds to wait."""
        self.asked.append(now_s)
        if sum(int(at) == int(now_s) for at in self.asked) <= self.per_s:
            return 0.0
        self.refused += 1
        return (int(now_s) + 1 - now_s) * 1000


def campaign(pacing: Pacing, clock: Clock, provider: Provider, *, runs: int, most: int, takes_s: float) -> float:
    """So many runs of one call each, as the executor starts them; gives when the last one ended."""
    ends: list[tuple[float, str]] = []
    left = [f"r{n}" for n in range(runs)]
    while left or ends:
        wait_s = 0.0
        while left and len(ends) < most and (wait_s := pacing.wait_s(len(ends), most)) <= 0:
            run = left.pop()
            pacing.started(run)
            pacing.sent(run)
            wait_ms = provider.ask(clock.now_s)
            if wait_ms:
                pacing.refused(run, refusal(wait_ms))
            heapq.heappush(ends, (clock.now_s + takes_s, run))
        until = clock.now_s + wait_s if wait_s else inf
        if ends and ends[0][0] <= until:
            clock.now_s, run = heapq.heappop(ends)
            pacing.ended(run, tokens=0, through=True)
        else:
            clock.now_s = until
    return clock.now_s


def test_a_provider_is_asked_about_as_often_as_it_bears() -> None:
    pacing, clock = paced()
    provider, alone = Provider(5), Provider(5)
    took_s = campaign(pacing, clock, provider, runs=200, most=10, takes_s=0.1)
    for n in range(200):  # ten at once, a tenth of a second each, and nobody listens
        alone.ask(n // 10 * 0.1)
    assert alone.refused > 180
    assert provider.refused <= 45  # one in each second: then all wait for the next
    assert took_s < 200 / 5 * 1.5


def test_a_rate_that_is_known_is_never_refused() -> None:
    pacing, clock = paced(calls_per_minute=240)
    provider = Provider(5)
    took_s = campaign(pacing, clock, provider, runs=100, most=10, takes_s=0.5)
    assert provider.refused == 0
    assert took_s == pytest.approx(99 / 4 + 0.5)


def call(occurrence: int, status: int, world: int = 0, name: str = "gpt") -> Exchange:
    def said(status: int) -> Recorded:
        return Recorded(status, (), "", [], [], False, "eof")

    found = Exchange(Site("llm", name, occurrence), "", "", "POST", "http://model", (), b"", said(status))
    found.world = said(world) if world else None
    return found


@pytest.mark.parametrize(
    ("exchanges", "error", "never"),
    [
        ([call(1, 429), call(2, 200)], None, False),
        ([call(1, 429)], None, True),
        ([call(1, 200), call(2, 429)], None, True),
        ([call(1, 429), call(2, 500)], None, True),
        ([call(1, 429), call(2, 500, world=200)], None, False),  # a fault did that, and is what is judged
        ([call(1, 429), call(2, 200, name="other")], None, True),
        ([call(1, 429), call(2, 200)], AgentError("timeout", "30 s"), True),
        ([call(1, 429), call(2, 200)], AgentError("crash", "it"), False),
    ],
)
def test_whether_the_agent_got_through(exchanges: list[Exchange], error: AgentError | None, never: bool) -> None:
    met = [refusal(call=x.site.occurrence) for x in exchanges if x.reply.status == 429]
    assert starved(met, exchanges, error) is never


def test_who_is_refused_nothing_got_through() -> None:
    assert not starved([], [call(1, 500)], AgentError("timeout", "30 s"))
    assert limited([]) == ""
    assert "llm/gpt#1 and 1 more call " in limited([refusal(), refusal()])


def test_a_run_tells_what_it_meets() -> None:
    pacing, _ = paced(calls_per_minute=60)
    met = Met("r0", pacing)
    pacing.started("r0")
    met.sent(Site("tool", "search", 1))
    met.sent(Site("llm", "gpt", 1))
    met.sent(Site("llm", "gpt", 2))
    met.refused(Site("llm", "gpt", 2), 429, (("retry-after-ms", "70"),))
    assert met.refusals == [Refusal("llm/gpt#2", 429, 70)]
    assert (pacing.paced.refusals, pacing.wait_s(0, 10)) == (1, 2)
    Met("r1", None).sent(Site("llm", "gpt", 1))  # nobody is told


def google(delay: str) -> bytes:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    return json.dumps({"error": {"code": 429, "details": [info]}}).encode()


def test_a_time_that_the_body_names_is_waited_for() -> None:
    pacing, _ = paced()
    met = Met("r1", pacing)
    pacing.started("r1")
    site = Site("llm", "gemini", 1)
    met.refused(site, 429, ())
    assert pacing.wait_s(0, 4) == 1.0  # it is known at once that it was refused
    met.explained(site, 429, (), google("12s"))
    assert (pacing.wait_s(0, 4), met.refusals) == (12.0, [Refusal(str(site), 429, 12_000)])
    assert pacing.paced.refusals == 1
    other = Site("llm", "gemini", 2)
    met.refused(other, 429, ())
    assert pacing.wait_s(0, 4) == 12.0
    met.explained(other, 429, (), b"busy")
    assert met.refusals[1] == Refusal(str(other), 429)


def test_a_503_whose_body_names_a_time_is_a_refusal_and_no_outage() -> None:
    pacing, _ = paced()
    met = Met("r1", pacing)
    pacing.started("r1")
    site = Site("llm", "gemini", 1)
    met.explained(site, 503, (), b"the model is down")
    met.explained(site, 500, (), google("12s"))
    assert (met.refusals, pacing.quiet) == ([], True)
    met.explained(site, 503, (), google("3s"))
    assert (met.refusals, pacing.wait_s(0, 4)) == ([Refusal(str(site), 503, 3000)], 3.0)


def test_what_the_head_says_goes_before_the_body() -> None:
    met = Met("r1", None)
    head = (("retry-after", "2"),)
    met.refused(Site("llm", "gemini", 1), 429, head)
    met.explained(Site("llm", "gemini", 1), 429, head, google("12s"))
    assert [refusal.wait_ms for refusal in met.refusals] == [2000]


def test_what_the_phases_of_a_command_waited_is_told_together() -> None:
    first, second = Paced(2, 1, 1, 1000.0, 3, 0.0), Paced(1, 1, 0, 0.0, 2, 50.0, "some are not known")
    assert together([first, None, second]) == Paced(3, 2, 1, 1000.0, 2, 50.0, "some are not known")
    assert together([None]) is None
    assert (paced_by(None), Paced().known, first.known) == (Paced(), None, first)
