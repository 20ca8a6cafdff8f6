from __future__ import annotations

import json

import pytest

from flakestorm.core.volume import holds_more


@pytest.mark.parametrize(
    "document", [[0] * 50, [[]] * 50, {str(n): n for n in range(50)}, ["x"] * 50, [[[[]] * 10] * 9]]
)
def test_values_are_counted_whatever_they_are(document: object) -> None:
    data = json.dumps(document, separators=(",", ":")).encode()
    assert holds_more(data, 20)
    assert not holds_more(data, 1000)


def test_what_stands_in_a_text_is_one_value() -> None:
    data = json.dumps(["[,,,{:" * 100, 'a "quoted" \\ text' * 100]).encode()
    assert not holds_more(data, 20)


def test_a_text_that_is_never_closed_ends_with_the_data() -> None:
    assert not holds_more(b'["' + b"[," * 1000, 20)
