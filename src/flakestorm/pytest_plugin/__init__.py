"""The pytest plug-in: an agent in a test, its world broken on purpose.

    @pytest.mark.flakestorm(profile="api_outage", trials=5)
    def test_admits_outage(agent_run):
        run = agent_run("Book a flight to Oslo")
        assert "unavailable" in run.output
        assert not run.tape.calls(tool="charge_card")

pytest loads this module in every project where flakestorm is installed, so it imports nothing but pytest; what stands
behind a hook or fixture is imported by the first test that uses it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from flakestorm.pytest_plugin.notes import AGENTS, RUNS, TAPED, UNJUDGED

if TYPE_CHECKING:
    from flakestorm.pytest_plugin.asking import AgentRun
    from flakestorm.pytest_plugin.taping import HeldTape

__all__ = ["MARKER"]

MARKER = "flakestorm"

_ABOUT = (
    "flakestorm(profile=None, scenario=None, faults=(), inject=(), tool_faults=(), llm_faults=(), context_attacks=(), "
    "trials=1, min_pass_rate=1.0, config=None, seed=None): what breaks in the world of agent_run, and how often the "
    "test is run."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plug-in's options."""
    group = parser.getgroup("flakestorm", "flakestorm: agents whose world breaks")
    group.addoption(
        "--flakestorm-record",
        action="store_true",
        help="Record the tapes of tests that use the `tape` fixture, instead of replaying them.",
    )
    group.addoption(
        "--flakestorm-seed", type=int, metavar="N", help="The seed of all faults; default: the marker's or config's."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _ABOUT)


@pytest.fixture
def agent_run(request: pytest.FixtureRequest) -> AgentRun:
    """Asks the configured agent: `run = agent_run("...")`; in an async test `run = await agent_run("...")`."""
    from flakestorm.pytest_plugin.asking import agent_run as make

    return make(request)


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> HeldTape:
    """The test's calls, recorded with --flakestorm-record, and answered by that recording ever after."""
    from flakestorm.pytest_plugin.taping import held_tape

    return held_tape(request)


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test with the marker is run once for each trial, and reported once."""
    if item.get_closest_marker(MARKER) is None:
        return None
    from flakestorm.pytest_plugin.trials import protocol

    return protocol(item, nextitem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """The test's tape holds its calls. A test that passed proves nothing where no planned fault fired."""
    if TAPED not in item.stash:
        result = yield
    else:
        tape = item.stash[TAPED]
        with tape.held():
            result = yield
        tape.check()
    if item.get_closest_marker(MARKER) is not None:
        from flakestorm.pytest_plugin.verdict import demand_a_fault

        demand_a_fault(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what happened to the agent."""
    report = yield
    if RUNS in item.stash or TAPED in item.stash or UNJUDGED in item.stash:
        from flakestorm.pytest_plugin.verdict import tell

        tell(item, call, report)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let go of the agents."""
    if AGENTS in session.config.stash:
        session.config.stash[AGENTS].close()
