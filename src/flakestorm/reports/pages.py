"""What every page has in common: the template engine, its style, and the policy that forbids it to load anything.

A page stands alone. What a template is given is escaped, and scripts and styles are allowed by their hash only, so even
markup that slipped through could not run.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from typing import Any

from markupsafe import Markup

from flakestorm.core.beside import beside
from flakestorm.core.regex import postponed
from flakestorm.reports.text import encodable, one_line, visible

with postponed("jinja2"):
    from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

__all__ = ["environment", "policy", "source", "still"]

_COMPILED = "flakestorm-template-%s.cache"


def environment(bytecode: str | None = None) -> Environment:
    """An engine for the templates of this package, with the filters `visible` and `line` of `reports.text`.

    Args:
        bytecode: the folder in which compiled templates are kept; default: none are.
    """
    made = Environment(
        loader=PackageLoader("flakestorm.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=FileSystemBytecodeCache(bytecode, _COMPILED) if bytecode else None,
    )
    made.filters |= {"visible": visible, "line": one_line}
    return made


@cache
def source(name: str) -> str:
    """A file among the templates as it is: style or script."""
    return beside("reports", "templates", name).read_text(encoding="utf-8")


def policy(style: str, script: str = "") -> str:
    """The Content-Security-Policy of a page with one style and at most one script, both in the page itself."""
    scripts = f" script-src {_hash(script)};" if script else ""
    return f"default-src 'none'; img-src data:; style-src {_hash(style)};{scripts} base-uri 'none'; form-action 'none'"


def still(template: str, style: str, **values: Any) -> str:
    """A page without a script.

    Args:
        template: its file; it is given `style` and `policy` beside the values.
        style: CSS.
        values: what the template needs. Strings are escaped; a function may be given as well.
    """
    made = environment()
    safe = Markup(style)  # noqa: S704 - our own file
    return encodable(made.get_template(template).render(style=safe, policy=policy(style), **values))


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
