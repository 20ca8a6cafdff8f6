"""What a run's invariants want to hear from a model: opinions, and how alike texts are in meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView
from flakestorm.contracts.evidence import plain
from flakestorm.contracts.matrix import asks_model, compared_with, faced, measured_by
from flakestorm.core.record import Record
from flakestorm.core.verdict import Verdict, inconclusive
from flakestorm.engine.plan import Trial
from flakestorm.engine.ports import Adviser, Embedder
from flakestorm.errors import ModelFailed

__all__ = ["Advice"]


class Advice(Record, frozen=True):
    """Asks on behalf of invariants.

    Args:
        adviser: the model that invariants of type `judge` ask.
        embedders: what measures likeness in meaning, by the word that `Invariant.measure` has for it.
    """

    adviser: Adviser | None = None
    embedders: Mapping[str, Embedder] = {}

    @property
    def silent(self) -> bool:
        """Whether there is nobody to ask."""
        return self.adviser is None and not self.embedders

    async def on(self, trial: Trial, view: RunView) -> RunView:
        """The run with the opinions that its invariants want; on the first trial of a cell the model is asked twice."""
        turns = [(invariant, faced(invariant, view)) for invariant in trial.invariants]
        wanted = [invariant for invariant, turn in turns if turn is not None and asks_model(invariant, turn)]
        times = 2 if trial.number == 1 else 1
        opinions = {str(e.id): [await self._opinion(e, faced(e, view) or view) for _ in range(times)] for e in wanted}
        alike = {
            str(each.id): await self._alike(measured_by(each), turn.output, text)
            for each in trial.invariants
            if (turn := faced(each, view)) is not None and (text := compared_with(each, turn)) is not None
        }
        return replace(view, opinions=opinions, alike=alike) if opinions or alike else view

    async def _alike(self, by: str, output: str, text: str) -> float | str:
        embedder = self.embedders.get(by)
        if embedder is None:
            return f"there is nothing to measure it by {by}"
        try:
            return await embedder.alike(output, text)
        except ModelFailed as error:
            return plain(str(error), 300)

    async def _opinion(self, invariant: Invariant, view: RunView) -> Verdict:
        if self.adviser is None:
            return inconclusive("there is no model to judge; see 'model' in the config")
        from flakestorm.contracts.judging import opinion, question  # few contracts ask a model

        asked = question(invariant, view)
        try:
            return opinion(await self.adviser.ask(asked.prompt, system=asked.system, temperature=0.0))
        except ModelFailed as error:
            return inconclusive(f"the judge could not be asked: {plain(str(error), 300)}")
