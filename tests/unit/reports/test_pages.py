import base64
import hashlib
import re

import pytest
from jinja2 import UndefinedError

from flakestorm.reports.pages import environment, policy, source, still


def test_what_a_template_is_given_is_escaped_and_what_it_lacks_is_an_error() -> None:
    engine = environment()
    assert engine.from_string("{{ said }}").render(said="<b>") == "&lt;b&gt;"
    assert engine.from_string("{{ said|line(4) }}").render(said="a\nbcdefg") != "a\nbcdefg"
    with pytest.raises(UndefinedError):
        engine.from_string("{{ said }}").render()


def test_a_policy_allows_what_is_on_the_page_and_nothing_else() -> None:
    plain, scripted = policy("p {}"), policy("p {}", "go()")
    assert plain.startswith("default-src 'none'; ")
    assert "script-src" not in plain
    digest = base64.b64encode(hashlib.sha256(b"go()").digest()).decode()
    assert f"script-src 'sha256-{digest}';" in scripted


@pytest.mark.parametrize("style", ["summary.css", "diff.css"])
def test_a_still_page_is_allowed_its_own_style(style: str) -> None:
    found = still("diff.html.j2", source(style), a="a", b="<b>", rows=[], equal=True, first=None,
                  counts=dict.fromkeys(("same", "changed", "missing", "added"), 0))  # fmt: skip
    inside = re.search("<style>(.*?)</style>", found, re.DOTALL)
    assert inside
    digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
    assert f"sha256-{digest}".replace("+", "&#43;") in found or f"sha256-{digest}" in found
    assert "&lt;b&gt;" in found
    assert "<script" not in found
