from __future__ import annotations

import pytest

from flakestorm.tape.redact import Redactor
from flakestorm.tape.shapes import SHAPES, shaped


@pytest.mark.parametrize("example", [shape[3] for shape in SHAPES], ids=[shape[0] for shape in SHAPES])
def test_every_shape_finds_its_example(example: str) -> None:
    for text in (f"say {example} twice", f"({example})", f"x={example}&y", example):
        data = text.encode()
        assert any(example.encode().endswith(found) for found in shaped(data, data.lower()))
        cleaned = Redactor("0", known=()).text(text)
        assert "[secret:" in cleaned
        assert example not in cleaned


@pytest.mark.parametrize("text", ["task-oriented-dialogue-systems", "eyJust", "AKIAB", "sk-none", "xoxo-", "AIzawa"])
def test_what_only_begins_like_one_is_none(text: str) -> None:
    assert list(shaped(text.encode(), text.lower().encode())) == []
