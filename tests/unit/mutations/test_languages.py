from mutations_support import mutations


def test_there_are_more_than_six_languages() -> None:
    from flakestorm.mutations.languages import FRAMES, WORDS

    assert len(FRAMES) >= 6
    assert len(WORDS) >= 6
    said = [m.text for m in mutations("language_mixing", "Book a flight to Oslo", count=200)]
    seen = [code for code, frames in FRAMES.items() if any(text.startswith(frames[0][0]) for text in said)]
    assert len(seen) >= 6
