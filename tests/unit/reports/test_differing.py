import json

from flakestorm.core.ledger import Firing
from flakestorm.core.site import Site
from flakestorm.reports.differing import dumps, page, text, to_document
from flakestorm.tape.diff import Run, diff
from replay_support import exchange, reply

SITE = Site("tool", "search", 1)


def found():
    bad = "<script>alert(1)</script>\x1b[31m"
    one = exchange(0, {"to": "Oslo"}, reply('{"n": 1}'), site=SITE, wire="")
    two = exchange(0, {"to": "Oslo"}, reply(json.dumps({"n": bad})), site=SITE, wire="")
    two.faults = (Firing(SITE, "wrong_value", "tool", "lied"),)
    extra = exchange(1, {"to": bad}, reply("3"), site=Site("tool", "book", 1), wire="")
    return diff(Run([one], output="a"), Run([two, extra], output="b"))


def test_the_document_names_what_changed_first() -> None:
    said = to_document(found(), "a.tape", "b.tape")
    assert json.loads(dumps(found(), "a.tape", "b.tape")) == said
    assert (said["format"], said["equal"], said["first"]["site"]) == ("flakestorm-diff/1", False, "tool/search#1")
    assert said["counts"] == {"same": 0, "changed": 2, "missing": 0, "added": 1}


def test_the_text_lets_nothing_reach_the_terminal() -> None:
    said = text(found(), "a.tape", "b.tape")
    assert "~ tool/search#1  reply  <- first" in said
    assert "+ tool/book#1" in said
    assert "\x1b" not in said
    assert said.endswith("different, first at tool/search#1 (1 added, 2 changed)")


def test_the_page_loads_nothing_and_shows_markup_as_text() -> None:
    said = page(found(), "a.tape", "<b>")
    assert "<script>" not in said
    assert "&lt;script&gt;" in said
    assert "&lt;b&gt;" in said
    assert "http" not in said.replace("http-equiv", "")
    assert "wrong_value: lied" in said


def test_the_same_is_said_so() -> None:
    same = diff(Run([]), Run([]))
    assert text(same, "a", "a").endswith("the same (both are empty)")
    assert "The same" in page(same, "a", "a")
