from flakestorm.wire.numbering import Numbers


def test_numbers_stay_as_they_are_while_nothing_happens() -> None:
    numbers = Numbers()
    assert [numbers.start(at) for at in range(3)] == [0, 1, 2]
    assert [numbers.now(at) for at in range(3)] == [0, 1, 2]


def test_what_is_left_out_leaves_no_gap() -> None:
    numbers = Numbers()
    numbers.start(0)
    numbers.drop(1)
    assert (numbers.start(2), numbers.now(0), numbers.now(2)) == (1, 0, 1)
    assert numbers.dropped == {1}


def test_what_is_put_in_moves_what_begins_after_it() -> None:
    numbers = Numbers()
    numbers.start(0)
    assert (numbers.insert(1), numbers.start(1), numbers.now(0)) == (1, 2, 0)


def test_a_number_may_come_again() -> None:
    numbers = Numbers()
    numbers.drop(1)
    assert (numbers.start(1), numbers.dropped) == (0, set())
