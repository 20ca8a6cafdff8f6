"""The built site, and the links of every page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.links import ROOT, broken, pages


def test_every_link_leads_somewhere() -> None:
    checked = pages(ROOT)
    assert len(checked) > 50
    assert [problem for page in checked for problem in broken(page, ROOT)] == []


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("b.md", ""),
        ("b.md#a-heading-of-b", ""),
        ("#mine", ""),
        ("https://example.com/x?y=1#z", ""),
        ("mailto:ada@example.com", ""),
        ("c.md", "there is no such file"),
        ("b.md#another", "there is no such heading"),
        ("#yours", "there is no such heading"),
        ("../outside.md", "leads out of the repository"),
        ("https://example", "not a well-formed address"),
        ("https:///x", "not a well-formed address"),
        ("ftp://example.com", "an address of the kind ftp"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, link: str, why: str) -> None:
    page = tmp_path / "a.md"
    page.write_text(f"# Mine\n\n[text]({link}) and `[code](nowhere.md)`\n\n```\n[shown](nowhere.md)\n```\n")
    (tmp_path / "b.md").write_text("# A heading, of `b`\n")
    assert list(broken(page, tmp_path)) == ([f"a.md: {link}: {why}"] if why else [])


def built(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """The site as `make docs` builds it."""
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--builder", "html"]
    return subprocess.run(
        [*command, "--doctree-dir", str(site.parent / "doctrees"), str(source), str(site)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_is_built_without_a_warning_and_asks_nobody_else_for_anything(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = built(ROOT / "docs", site)
    assert done.returncode == 0, done.stderr
    made = {page.relative_to(site).with_suffix(".md") for page in site.rglob("*.html")}
    assert {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")} <= made
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page.read_text())
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == [], page.name
    for style in site.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text()), style.name


def test_a_broken_link_fails_the_build_and_one_out_of_the_folder_is_told_by_name(tmp_path: Path) -> None:
    source = tmp_path / "docs"
    source.mkdir()
    (source / "conf.py").write_text((ROOT / "docs" / "conf.py").read_text())
    (tmp_path / "READ.md").write_text("# Read\n")
    (source / "index.md").write_text("# Title\n\n[nowhere](nowhere.md) and [the\nother](../READ.md#read)\n")
    done = built(source, tmp_path / "site")
    assert done.returncode != 0
    assert re.findall(r"target not found: '(.*?)'", done.stderr) == ["nowhere.md"]
    shown = re.sub(r"<[^>]+>", "", (tmp_path / "site" / "index.html").read_text())
    assert "the\nother (READ.md)" in shown
