"""The options every command takes, before or after the command's name; the later one wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from flakestorm.errors import ConfigError, Misuse

if TYPE_CHECKING:
    from flakestorm.api.options import OnRay

__all__ = ["FORMATS", "Globals", "from_option", "global_options", "global_options_with"]

T = TypeVar("T")

FORMATS = ("html", "json", "terminal", "junit", "markdown", "sarif", "otel")


class Globals(NamedTuple):
    """What the global options said; None where they said nothing."""

    config: Path | None = None
    quiet: bool | None = None
    output: Path | None = None
    format: str | None = None
    seed: int | None = None
    trials: int | None = None
    concurrency: int | None = None
    executor: str | None = None
    workers: int | None = None
    address: str | None = None
    no_color: bool | None = None

    @property
    def config_path(self) -> Path:
        """The config file: what -c said, else flakestorm.yaml in the current folder."""
        return self.config or Path("flakestorm.yaml")

    @property
    def ray(self) -> OnRay | None:
        """Where runs are made; None for here."""
        if self.executor != "ray":
            return None
        from flakestorm.api.options import OnRay

        return OnRay(self.workers, self.address or "")


from_option = click.option(
    "--from",
    "form",
    type=click.Choice(["auto", "langfuse", "otel", "langsmith", "vcr"]),
    default="auto",
    help="What recorded the files (auto: look).",
)
"""Of commands that read other tools' recordings."""


ON_RAY = ("run", "chaos", "contract run", "contract score", "ci")
"""The commands whose runs may be made on a cluster: those that plan them before they make them."""

_NAMES = Globals._fields


def global_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the global options to a group or command, which is then called with a `Globals` first."""
    return global_options_with(FORMATS)(command)


def global_options_with(forms: Sequence[str]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """As `global_options`, for commands whose results come in other forms than reports do."""

    def add(command: Callable[..., T]) -> Callable[..., T]:
        return _added(command, forms)

    return add


@cache
def _options(forms: tuple[str, ...]) -> tuple[click.Parameter, ...]:
    """The global options, last one first: made once, and the same for all commands."""

    def bare() -> None: ...

    options = [
        click.option("-c", "--config", type=click.Path(path_type=Path), help="Config file (flakestorm.yaml)."),
        click.option("-q", "--quiet", is_flag=True, default=None, help="Print results only."),
        click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the report to this file."),
        click.option("--format", type=click.Choice(forms), help="Form of the report."),
        click.option("--seed", type=click.IntRange(-(2**63), 2**63 - 1), help="Every random choice follows from it."),
        click.option("--trials", type=click.IntRange(min=1), help="Runs of each cell."),
        click.option("--concurrency", type=click.IntRange(1, 100), help="Runs under way at once."),
        click.option("--executor", type=click.Choice(["local", "ray"]), help="Where runs are carried out (local)."),
        click.option("--workers", type=click.IntRange(min=1), help="Workers on Ray (one for each processor)."),
        click.option("--address", metavar="HOST:PORT|auto", help="The Ray cluster (one of its own)."),
        click.option("--no-color", is_flag=True, default=None, help="No colour, no styling."),
    ]
    for option in reversed(options):
        option(bare)
    found: list[click.Parameter] = bare.__click_params__  # type: ignore[attr-defined]
    return tuple(found)


def _added(command: Callable[..., T], forms: Sequence[str]) -> Callable[..., T]:
    @wraps(command)
    def with_globals(**params: object) -> T:
        own = {name: value for name, value in params.items() if name not in _NAMES}
        found = _gather(click.get_current_context())
        try:
            return command(found, **own)
        except ConfigError as error:
            if error.line is not None or error.key is None:
                raise
            from flakestorm.config.load import placing  # for those whose config is wrong

            with placing(found.config_path):
                raise

    own: list[click.Parameter] = getattr(with_globals, "__click_params__", [])
    with_globals.__click_params__ = [*own, *_options(tuple(forms))]  # type: ignore[attr-defined]
    return with_globals


def _gather(ctx: click.Context) -> Globals:
    """What was said to this command and to the groups it was called through, the nearest having the last word.

    Raises:
        Misuse: workers were asked for, and this command has no use for them.
    """
    found = Globals()
    chain: list[click.Context] = []
    at: click.Context | None = ctx
    while at is not None:
        chain.append(at)
        at = at.parent
    for context in reversed(chain):
        said = {name: context.params[name] for name in _NAMES if context.params.get(name) is not None}
        found = found._replace(**said)
    if found.executor != "ray" and (found.workers is not None or found.address is not None):
        raise Misuse("--workers and --address are of a Ray cluster; add --executor ray")
    if found.executor == "ray" and not isinstance(ctx.command, click.Group) and _name(ctx) not in ON_RAY:
        those = ", ".join(f"`{name}`" for name in ON_RAY)
        raise Misuse(f"`{_name(ctx)}` is carried out here only; --executor ray is for {those}")
    return found


def _name(ctx: click.Context) -> str:
    """The command's name, with that of its group, without that of the program."""
    names: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        names.insert(0, at.info_name or "")
        at = at.parent
    return " ".join(names)
