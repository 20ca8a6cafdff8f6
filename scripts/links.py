"""The link checker of the documentation: README, the other pages of the root, and docs/.

    python scripts/links.py

A link to a file must lead to a file of this repository, and its anchor to a heading there. Addresses on the web must be
well formed; none is asked for. Exits 1 and names page and link where one is not right.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["ROOT", "broken", "pages"]

ROOT = Path(__file__).resolve().parent.parent
_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?", re.IGNORECASE)
_MARKDOWN = MarkdownIt("commonmark").enable("table")


def main() -> int:
    found = [problem for page in pages(ROOT) for problem in broken(page, ROOT)]
    for problem in found:
        print(problem)
    return 1 if found else 0


def pages(root: Path) -> list[Path]:
    """The pages that are checked."""
    found = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("examples/**/*.md")]
    return sorted(page for page in found if "node_modules" not in page.parts)


def broken(page: Path, root: Path) -> Iterator[str]:
    """What is wrong with the links of a page, in words."""
    for target in _targets(page):
        why = _address(target) if urlsplit(target).scheme else _file(page, target, root)
        if why:
            yield f"{page.relative_to(root)}: {target}: {why}"


def _targets(page: Path) -> Iterator[str]:
    for token in _inline(page):
        for part in token.children or ():
            target = part.attrGet("src" if part.type == "image" else "href")
            if target and part.type in ("image", "link_open"):
                yield str(target)


def _address(target: str) -> str:
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https", "mailto"):
        return f"an address of the kind {parts.scheme}"
    if parts.scheme != "mailto" and not _HOST.fullmatch(parts.netloc):
        return "not a well-formed address"
    return ""


def _file(page: Path, target: str, root: Path) -> str:
    path, _, anchor = unquote(target).partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(root):
        return "leads out of the repository"
    if not file.exists():
        return "there is no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return "there is no such heading"
    return ""


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that viewers of Markdown give a page's headings."""
    seen: Counter[str] = Counter()
    found = set()
    tokens = _tokens(page)
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            text = "".join(part.content for part in following.children or () if part.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return frozenset(found)


def _inline(page: Path) -> Iterator[Token]:
    return (token for token in _tokens(page) if token.type == "inline")


@cache
def _tokens(page: Path) -> list[Token]:
    return _MARKDOWN.parse(page.read_text("utf-8"))


if __name__ == "__main__":
    sys.exit(main())
