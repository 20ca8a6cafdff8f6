"""Mutations by the configured model: asked once for each prompt and type, kept by content, not waited for in vain.

Where the model gives too little, or nothing, the built-in operators write the rest, and a note says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from flakestorm.config.model import Config, Model
from flakestorm.core.conversation import Conversation, turns_of
from flakestorm.engine.ports import Adviser
from flakestorm.errors import ModelFailed
from flakestorm.mutations.base import Mutation
from flakestorm.mutations.by_model import ABOUT, SYSTEM, question, taken, texts_in
from flakestorm.mutations.generate import Recipe, made, row
from flakestorm.tape.shelf import STORE

__all__ = ["Writer", "written"]

AT_ONCE = 4
FAILURES = 2
"""After so many questions without an answer, the model is asked no more."""

_KEPT_BYTES = 4 * 2**20

Row = tuple[list[Mutation], list[str]]


def written(
    config: Config,
    recipe: Recipe,
    client: Callable[[Model], Adviser],
    loop: Callable[[Callable[[], Coroutine[object, object, list[Row]]]], list[Row]],
) -> list[Row]:
    """The mutations of each golden prompt, by the model as far as it goes, and what must be said about them.

    Args:
        config, recipe: what is wanted.
        client: makes the client of a model.
        loop: does what it is given on an event loop.
    """
    model = config.model
    if model is None or model.provider == "none":
        rows = [made(recipe, prompt) for prompt in config.golden_prompts]
        why = "no model is configured; the built-in operators wrote the mutations"
        return [(found, [*notes, *([f"mutations.engine is llm, but {why}"] if not at else [])])
                for at, (found, notes) in enumerate(rows)]  # fmt: skip

    async def write() -> list[Row]:
        asked = client(model)
        try:
            return await Writer(asked, model, recipe, Path(config.folder, STORE, "mutations")).rows(
                config.golden_prompts
            )
        finally:
            await asked.close()

    return loop(write)


@dataclass(slots=True)
class Writer:
    """Has mutations written.

    Args:
        adviser, model: who writes.
        recipe: what is wanted.
        folder: where answers are kept, each under the digest of its question.
    """

    adviser: Adviser
    model: Model
    recipe: Recipe
    folder: Path
    _failed: list[str] = field(default_factory=list)
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def rows(self, prompts: list[str]) -> list[Row]:
        """The mutations of each prompt, in order."""
        kinds = [kind for kind in self.recipe.types if kind in ABOUT]
        asked = [(prompt, kind) for prompt in dict.fromkeys(prompts) for kind in kinds]
        answers = await asyncio.gather(*(self._texts(kind, prompt) for prompt, kind in asked))
        texts = dict(zip(asked, answers, strict=True))
        rows = [self._row(prompt, texts) for prompt in prompts]
        if self._failed and rows:
            rows[0][1].append(f"the model could not be asked for all mutations: {self._failed[0]}")
        return rows

    def _row(self, prompt: str, texts: dict[tuple[str, str], list[str]]) -> Row:
        """What the model wrote, filled up by the built-in operators to what was asked for."""
        found: list[Mutation] = []
        notes: list[str] = []
        seen = {prompt}
        for kind in self.recipe.types:
            own: list[Mutation] = []
            by_model = _placed(
                prompt, taken(kind, _last(prompt), texts.get((prompt, kind), []), self.recipe.weight(kind))
            )
            for source in (by_model, row(self.recipe, kind, prompt)):
                for mutation in source:
                    if len(own) == self.recipe.count:
                        break
                    if mutation.change is not None or mutation.text not in seen:
                        seen.add(mutation.text)
                        own.append(mutation)
            found += own
            built_in = sum(mutation.number > 0 for mutation in own)
            if kind in ABOUT and built_in:
                notes.append(f"{kind}: built-in operators wrote {built_in} of {len(own)} mutations of {prompt[:60]!r}")
            if len(own) < self.recipe.count:
                notes.append(f"{kind}: {len(own)} of {self.recipe.count} mutations of {prompt[:60]!r}")
        return found, notes

    async def _texts(self, kind: str, prompt: str) -> list[str]:
        """What the model writes, or has written before; nothing where it fails."""
        asked = question(kind, _last(prompt), self.recipe.count)
        path = self.folder / f"{self._digest(asked)}.json"
        kept = _kept(path)
        if kept:
            return kept
        async with self._turn:
            if len(self._failed) >= FAILURES:
                return []
            try:
                found = texts_in(await self.adviser.ask(asked, system=SYSTEM))
            except ModelFailed as error:
                self._failed.append(str(error))
                return []
        if found:
            _keep(path, found)
        return found

    def _digest(self, asked: str) -> str:
        model = self.model
        about = (model.provider, model.name, model.base_url, model.temperature, SYSTEM, asked)
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _last(prompt: str) -> str:
    """What a model is asked to write anew: of a conversation, its last turn."""
    return turns_of(prompt)[-1]


def _placed(prompt: str, found: Iterable[Mutation]) -> Iterator[Mutation]:
    """The mutations of a last turn, as those of its conversation."""
    for mutation in found:
        if not isinstance(prompt, Conversation):
            yield mutation
            continue
        whole = prompt.changed(len(prompt.turns) - 1, lambda _, text=mutation.text: text)  # type: ignore[misc]
        yield replace(mutation, original=prompt, text=whole)


def _kept(path: Path) -> list[str]:
    """The texts in a file of an earlier run; none where it cannot be read or holds something else."""
    try:
        if path.stat().st_size > _KEPT_BYTES:
            return []
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(text, str) for text in found) else []


def _keep(path: Path, texts: list[str]) -> None:
    """Only a convenience: a folder that cannot be written to costs another question next time."""
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(texts), encoding="utf-8")
        part.replace(path)
    except OSError:
        return
