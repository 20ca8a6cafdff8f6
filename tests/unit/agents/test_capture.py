"""Bounded memory, from the beginning or from the end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.agents.capture import Capture


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 30))
def test_the_first_or_the_last_bytes_are_kept(chunks: list[bytes], limit: int) -> None:
    first, last = Capture(limit, keep_first=True), Capture(limit)
    for chunk in chunks:
        first.add(chunk)
        last.add(chunk)
        assert len(last._data) <= 2 * limit
    whole = b"".join(chunks)
    assert first.data == whole[:limit]
    assert last.data == whole[-limit:]
    assert first.overflowed == last.overflowed == (len(whole) > limit)
