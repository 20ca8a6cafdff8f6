from mutations_support import mutations


def test_names_are_not_shouted() -> None:
    (loud, *_) = [
        m.text for m in mutations("tone_shift", "Book a flight to Oslo", count=40) if m.operator == "shouting"
    ]
    assert loud.startswith("BOOK A FLIGHT TO Oslo")
