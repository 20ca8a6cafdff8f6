"""What every runner of a project is given, wherever its runs are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

from flakestorm.api.redaction import redaction_of
from flakestorm.api.reproducing import reproduce_by
from flakestorm.config import tools_of
from flakestorm.engine.pacing import Pacing

if TYPE_CHECKING:
    from flakestorm.api.carrying import Work
    from flakestorm.api.options import Options
    from flakestorm.boundary.hub import Hub
    from flakestorm.config.model import Scenario
    from flakestorm.core.ledger import Ledger
    from flakestorm.engine.budget import Budget
    from flakestorm.engine.events import Listener
    from flakestorm.engine.plan import Trial
    from flakestorm.executors.world import LocalWorld
    from flakestorm.faults.schedule import Schedule
    from flakestorm.tape.redact import Redactor

__all__ = ["Outfit", "outfit_of"]


class Outfit(TypedDict):
    """Beside its agent, who carries runs out, and how many at a time; `engine.runner.Runner` says what each is."""

    boundary: Hub
    world: LocalWorld
    seed: int
    tools: Sequence[tuple[str, str]]
    listener: Listener
    reproduce: Callable[[Trial, Schedule, Ledger], str]
    redaction: Callable[[], Redactor]
    budget: Budget | None
    pacing: Pacing | None


def outfit_of(
    work: Work, scenarios: Iterable[Scenario], options: Options, seed: int, world: LocalWorld, hub: Hub
) -> Outfit:
    """The outfit of a runner.

    Args:
        work: the project.
        scenarios: all there will be, for the tools they name.
        options: how.
        seed: every random choice follows from it.
        world, hub: time and places, and the boundary.

    Raises:
        ConfigError: an entry of `boundary.redact` makes no sense.
    """
    config = work.config
    return Outfit(
        boundary=hub,
        world=world,
        seed=seed,
        tools=tools_of(config, *scenarios),
        listener=options.listener,
        reproduce=reproduce_by(work, seed),
        redaction=redaction_of(config, seed),
        budget=options.budget,
        pacing=options.pacing or Pacing(world.monotonic, config.advanced.rate_limit),
    )
