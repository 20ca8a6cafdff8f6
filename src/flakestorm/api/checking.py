"""What can be known of a config before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flakestorm.agents.registry import make as make_agent
from flakestorm.api.carrying import Work, embedders_of, judges_by
from flakestorm.api.redaction import redaction_of
from flakestorm.boundary.hub import Hub
from flakestorm.config.access import faults_in, invariants_in
from flakestorm.config.load import located
from flakestorm.config.model import Config
from flakestorm.config.problems import Path as Place
from flakestorm.contracts.matrix import prepare
from flakestorm.core.loading import demand_module, importing_from
from flakestorm.engine.plan import Plan
from flakestorm.errors import Misuse
from flakestorm.faults.schedule import Planned

__all__ = ["check"]


def check(work: Work, plan: Plan) -> Plan:
    """Check all that needs no run, and no code of the agent's; gives the plan.

    Args:
        work: the project.
        plan: what would be run of it.

    Raises:
        ConfigError: a mode or type is not available, a setting makes no sense, or a module or folder it names is not
            there; names file and line.
        Misuse: the agent needs what is not installed.
    """
    config = work.config
    redaction_of(config)
    for place, invariant in invariants_in(config):
        with _standing(work.path, place):
            prepare([invariant])
    for place, fault in faults_in(config):
        with _standing(work.path, place):
            Planned.of(fault).check()
    make_agent(config, Hub(), concurrency=1)
    _modules(config)
    judges_by(config, (*config.invariants, *plan.invariants))
    embedders_of(config, (*config.invariants, *plan.invariants))
    return plan


def _modules(config: Config) -> None:
    """The modules that will be imported into this process are there; what is in them is known when they have run."""
    agent = config.agent
    named = {"agent.reset_function": agent.reset_function}
    if agent.type in ("python", "langchain"):
        named |= {"agent.endpoint": agent.endpoint, "agent.tools": agent.tools}
    folder = Path(config.folder).absolute()
    with importing_from(folder):
        for key, name in named.items():
            if name is not None:
                demand_module(name, folder=folder, key=key)


@contextmanager
def _standing(file: Path, place: Place) -> Iterator[None]:
    """While entered, misuse is of what stands at this place in the file."""
    try:
        yield
    except Misuse as error:
        raise located(error, file, place) from error
