"""`flakestorm diff A B`: two recorded runs, side by side."""

from __future__ import annotations

from pathlib import Path

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.errors import Misuse

__all__ = ["diff"]

_SUFFIX = {".html": "html", ".htm": "html", ".json": "json"}


@click.command(short_help="Compare two tapes: what changed first, and what followed.")
@global_options
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
def diff(options: Globals, a: Path, b: Path) -> int:
    """Put two recorded runs side by side, by lane and site: what changed first, and what followed.

    Ids and times may be other ones, as long as one stands for one all through. --format json and html, or an -o that
    ends so, make a `flakestorm-diff/1` object or a page.

    Exit code: 0 the same, 1 different, 2 a tape is damaged.
    """
    from flakestorm.api.differing import compare_tapes
    from flakestorm.cli.tapes import _put
    from flakestorm.reports import differing

    form = options.format or (_SUFFIX.get(options.output.suffix.lower()) if options.output else None) or "terminal"
    render = {"terminal": differing.text, "json": differing.dumps, "html": differing.page}.get(form)
    if render is None:
        raise Misuse(f"a diff has no {form} form; use --format terminal, json or html")
    found = compare_tapes(a, b)
    _put(render(found, str(a), str(b)), options.output)
    return 0 if found.equal else 1
