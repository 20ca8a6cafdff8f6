"""`flakestorm compare BASE HEAD`: is the new version worse?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from flakestorm import api
from flakestorm.cli.forms import unknown_suffix
from flakestorm.cli.judging import resume_option
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.output import results_only, watching
from flakestorm.cli.saved import comparison_named, report_named, store_folder
from flakestorm.cli.spending import Spending, expected, spending_options
from flakestorm.errors import Misuse
from flakestorm.reports.comparison import dumps, pairs_of, to_document
from flakestorm.reports.comparison_text import markdown, page, text
from flakestorm.reports.files import write_whole
from flakestorm.reports.text import counted

__all__ = ["compare", "form_of", "written"]

_SUFFIX = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "terminal",
}
_FORMS = {"html": page, "json": dumps, "markdown": markdown, "terminal": text}


@click.command()
@global_options
@click.argument("base")
@click.argument("head")
@click.option("--alpha", type=click.FloatRange(0, 0.5, min_open=True), default=0.05, help="Chance of a false alarm.")
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    help="How much worse is accepted.",
)
@click.option("--max-pairs", type=click.IntRange(min=1), default=200, help="So many pairs are enough (200).")
@click.option("--replay/--no-replay", default=True, help="Play BASE's tapes to HEAD before running it live.")
@resume_option
@spending_options
def compare(
    options: Globals,
    base: str,
    head: str,
    alpha: float,
    delta: float,
    max_pairs: int,
    replay: bool,
    resume: str | None,
    spending: Spending,
) -> int:
    """Compare two versions of the agent in pairs: is HEAD worse than BASE?

    \b
    flakestorm compare main HEAD                       two commits, each with its own agent
    flakestorm compare main flakestorm.yaml            a commit and the working copy
    flakestorm compare gpt-4o.yaml gpt-4o-mini.yaml    two configs
    flakestorm compare 20261122-073645-ab12 latest     two saved reports, nothing is run

    What is judged is HEAD's contract, by HEAD's invariants, with the same seeds. Exits 1 on a regression, 0 where HEAD
    is better or not worse by --delta, 3 where --max-pairs or the budget did not suffice to tell.
    """
    form = form_of(options)
    folder = options.output.absolute().parent if options.output else _folder()
    tapes = options.output.absolute().with_suffix(".tapes") if options.output else folder / "tapes"
    terms = api.Terms(alpha, delta, max_pairs)
    if spending.dry_run:
        _dry_run(base, head, terms, options)
        return 0
    before = None if resume is None else _earlier(resume, base, head, options)
    seed = options.seed if before is None else before["seed"]
    with results_only(), watching(options) as shown:
        found = api.compare(
            base,
            head,
            config=options.config_path,
            terms=terms,
            options=api.Options(
                seed=seed, trials=options.trials, concurrency=options.concurrency, tapes=tapes,
                listener=shown, **spending.options(),
            ),
            saved=lambda name: report_named(name, options),
            replay=replay,
            earlier=() if before is None else pairs_of(before, base=Path(resume or "").parent),
        )  # fmt: skip
    saved, problem = _save(to_document(found), store_folder(options))
    file = options.output.absolute() if options.output else folder / "compare.json"
    document = to_document(found, base=file.parent)
    write_whole(file, f"{written(document, form if options.output else 'json')}\n".encode())
    if options.output is None:
        write_whole(file.with_suffix(".html"), f"{page(document)}\n".encode())
    if options.format in ("json", "markdown") and options.output is None:
        click.echo(written(document, options.format))
    elif options.quiet:
        click.echo(f"{found.conclusion}: {found.ruling.headline}")
    else:
        click.echo(text(document))
        click.echo(f"report: {file}")
        if saved:
            click.echo(f"saved: {saved} (`flakestorm report {saved}` shows it again)")
    if problem:
        click.echo(f"note: this comparison was not saved for later: {problem}", err=True)
    if found.interrupted or (found.stopped and found.conclusion == "inconclusive"):
        why = "interrupted" if found.interrupted else f"the budget was reached ({found.stopped})"
        click.echo(f"{why}; the pairs that had finished are kept. To resume: {_again(saved or str(file))}", err=True)
    return found.exit_code


def _earlier(name: str, base: str, head: str, options: Globals) -> dict[str, Any]:
    """The comparison to go on from.

    Raises:
        Misuse: there is none, or it is of something else.
    """
    found = comparison_named(name, options)
    if found is None:
        raise Misuse(f"{name}: there is no such comparison; give the JSON document or the id of one")
    compared = found["base"]["name"], found["head"]["name"]
    if compared != (base, head):
        raise Misuse(f"{name} compares {compared[0]} and {compared[1]}; resume it with these")
    if options.seed not in (None, found["seed"]):
        raise Misuse(f"{name} was made with seed {found['seed']}; resume it with that seed or none")
    return found


def _again(kept: str) -> str:
    """The same command, as it was typed, going on from this."""
    typed = ["flakestorm", *sys.argv[1:]]
    if "--resume" in typed:
        del typed[typed.index("--resume") : typed.index("--resume") + 2]
    return shlex.join([*typed, "--resume", kept])


def _dry_run(base: str, head: str, terms: api.Terms, options: Globals) -> None:
    """Say how many runs there would be at most, and what they would cost."""
    found = api.would_run(
        base, head, config=options.config_path, terms=terms, options=api.Options(trials=options.trials),
        saved=lambda name: report_named(name, options),
    )  # fmt: skip
    for name, runs, agent in found:
        click.echo(f"{name}: at most {counted(runs, 'run')} would be made, fewer if it is clear sooner")
        click.echo(expected(runs, agent, store_folder(options)))
    if not found:
        click.echo("0 runs would be made: both versions are reports")


def form_of(options: Globals) -> str:
    """The form of the file that was asked for.

    Raises:
        Misuse: a comparison has no such form, or the file's name ends like none of them.
    """
    suffix = "" if options.output is None else options.output.suffix.lower()
    if options.output is not None and suffix and not (options.format or suffix in _SUFFIX):
        raise Misuse(unknown_suffix(options.output, _SUFFIX))
    form = options.format or _SUFFIX.get(suffix, "json")
    if form not in _FORMS:
        raise Misuse(f"a comparison has no form {form!r}; available: {', '.join(_FORMS)}")
    return form


def written(document: Mapping[str, Any], form: str) -> str:
    """The document in this form, without a final newline."""
    return _FORMS[form](document).removesuffix("\n")


def _folder() -> Path:
    first = Path("reports", f"{datetime.now():%Y%m%d-%H%M%S}-compare").absolute()
    folder, n = first, 2
    while folder.exists():  # two commands in one second
        folder, n = first.with_name(f"{first.name}-{n}"), n + 1
    return folder


def _save(document: Mapping[str, Any], folder: Path) -> tuple[str, str]:
    """Keep it in the store; gives its id, or why there is none."""
    from flakestorm.store.sqlite import Store

    try:
        with Store(folder, write=True) as store:
            return store.save(document), ""
    except Misuse as error:
        return "", str(error)
