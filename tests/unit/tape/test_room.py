from flakestorm.tape.room import CUT, ROOM_BYTES, Room


def test_chunks_are_kept_whole_as_long_as_there_is_room() -> None:
    room = Room(1000)
    assert [room.take(b"x" * 100) for _ in range(4)] == [b"x" * 100] * 4
    assert not room.cut


def test_of_the_one_that_does_not_fit_the_beginning_is_kept_and_then_nothing() -> None:
    room = Room(1000)
    assert room.take(b"x" * 2000) == b"x" * 872
    assert room.cut
    assert room.take(b"y") == b""


def test_small_chunks_take_room_too() -> None:
    room = Room(1280)
    assert sum(len(room.take(b"x")) for _ in range(100)) < 10
    assert room.cut


def test_the_note_says_how_much() -> None:
    assert f"{ROOM_BYTES >> 20} MB" in CUT
