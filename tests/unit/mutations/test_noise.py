from mutations_support import mutations


def test_neighbours_are_next_to_each_other_on_the_keyboard() -> None:
    from flakestorm.mutations.noise import NEIGHBOURS

    assert {*NEIGHBOURS["g"]} == {*"fhtyvb"}
    assert {*NEIGHBOURS["q"]} == {*"wa"}
    assert all(key in NEIGHBOURS[other] for key, others in NEIGHBOURS.items() for other in others)


def test_a_typo_is_one_key_away() -> None:
    from flakestorm.mutations.noise import NEIGHBOURS

    prompt = "book a flight"
    for mutation in mutations("noise", prompt, count=100):
        if mutation.operator == "neighbour_key":
            changed = [(a, b) for a, b in zip(prompt, mutation.text, strict=True) if a != b]
            assert all(b in NEIGHBOURS[a] for a, b in changed)
