import re
import subprocess
import sys
from threading import Thread

import pytest

from flakestorm.core.regex import later, postponed

HERE = __name__.partition(".")[0]


def test_it_does_what_the_compiled_pattern_does() -> None:
    for source, flags, text in (("a(b+)", 0, "xABBab"), ("a(?P<more>b+)", re.IGNORECASE, "xABBab"), ("z", 0, "xABBab")):
        found, compiled = later(source, flags), re.compile(source, flags)
        for _ in range(2):
            assert found.findall(text) == compiled.findall(text)
            assert found.sub("-", text) == compiled.sub("-", text)
            assert (found.search(text) is None) == (compiled.search(text) is None)
            assert (found.pattern, found.flags, found.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert later(rb"\d+").findall(b"1 and 22") == [b"1", b"22"]


def test_nothing_is_compiled_before_it_is_used() -> None:
    broken = later("(")
    with pytest.raises(re.error):
        broken.search("text")


def test_what_is_compiled_meanwhile_is_compiled_when_it_is_used() -> None:
    compiled, elsewhere = re.compile, []
    with postponed(HERE):
        broken, good = re.compile("("), re.compile("a(B+)", re.IGNORECASE)
        thread = Thread(target=lambda: elsewhere.append(re.compile("a")))
        thread.start()
        thread.join()
        assert isinstance(re.compile(compiled("a")), re.Pattern)
    assert re.compile is compiled
    assert good.findall("xABBab") == ["BB", "b"]
    assert isinstance(elsewhere[0], re.Pattern)
    with pytest.raises(re.error):
        broken.search("text")


def test_what_a_library_itself_imports_is_not_concerned() -> None:
    with postponed("elsewhere"):
        assert isinstance(re.compile("a"), re.Pattern)
    command = "from flakestorm.reports import pages; import re, json; print(type(json.scanner.NUMBER_RE) is re.Pattern)"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_what_is_imported_may_use_its_patterns_at_once() -> None:
    with postponed(HERE):
        waiting = re.compile("[a-z]+")
        assert waiting.findall("one two") == ["one", "two"]


def test_a_failed_import_leaves_things_as_they_were() -> None:
    compiled = re.compile
    with pytest.raises(ImportError), postponed(HERE):
        raise ImportError
    assert re.compile is compiled


LIBRARIES = r"""
import re
from flakestorm.config.marked import parse, unfold, yaml
from flakestorm.reports.pages import Environment
print(unfold(parse("[1, 0x1F, 1.5, 2026-01-02, yes, ~, '=', !!str 1, {a: b}]")))
print(yaml.safe_load("[1, 0x1F, 1.5, 2026-01-02 03:04:05, yes, ~]"), yaml.load("[é]", yaml.SafeLoader))
print(yaml.safe_dump({"a": ["1", "yes", "2026-01-02", "x\x85"]}))
try:
    yaml.load("\x01", yaml.SafeLoader)
except yaml.YAMLError as error:
    print(error)
page = "{% for x in y %}{{ x|urlize }} {{ 1.5 + 0x1F }}{% endfor %}{{ 'a b-c'|title }}{{ {'a b': 1}|length }}{# no #}"
print(Environment(autoescape=True).from_string(page).render(y=["http://a.b", "a@b.c"]))
print(isinstance(yaml.reader.Reader.NON_PRINTABLE, re.Pattern))
"""


def test_libraries_do_what_they_do() -> None:
    """PyYAML and Jinja with patterns that wait, and without."""
    said = []
    for before in ("", "import yaml, jinja2"):
        command = [sys.executable, "-c", before + LIBRARIES]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        said.append(done.stdout.splitlines())
    assert (said[0][-1], said[1][-1]) == ("False", "True")
    assert said[0][:-1] == said[1][:-1]
    assert said[0][0].startswith("[1, 31, 1.5, '2026-01-02', True, None, '=', '1'")
