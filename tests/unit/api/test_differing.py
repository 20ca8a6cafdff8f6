from pathlib import Path

import httpx
import pytest

import flakestorm
from flakestorm.api.differing import compare_tapes
from flakestorm.errors import TapeDamaged
from upstream import Upstream, document


def test_two_tapes_are_read_and_put_side_by_side(tmp_path: Path) -> None:
    with Upstream() as up:
        up.reply("/search", document({"n": 1}), document({"n": 1}), document({"n": 2}))
        for name in "abc":
            with flakestorm.record(tmp_path / f"{name}.tape", input="go", tools={"search": "*/search"}) as recording:
                recording.output = httpx.post(f"{up.url}/search", json={}).text
    assert compare_tapes(tmp_path / "a.tape", tmp_path / "b.tape").equal
    first = compare_tapes(tmp_path / "a.tape", tmp_path / "c.tape").first
    assert first is not None
    assert (str(first.site), first.what) == ("tool/search#1", ("reply",))
    with pytest.raises(TapeDamaged, match=r"none\.tape"):
        compare_tapes(tmp_path / "a.tape", tmp_path / "none.tape")
