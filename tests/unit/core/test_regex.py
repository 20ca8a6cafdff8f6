import re

import pytest

from flakestorm.core.regex import later


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
