from flakestorm.tape.difference import differences


def test_each_place_is_one_line() -> None:
    old = {"a": 1, "b": {"c": [1, 2]}, "d": "x"}
    new = {"a": 2, "b": {"c": [1]}, "e": None}
    assert differences(old, new) == [
        "a: 1 -> 2",
        "b.c[1]: 2 -> missing",
        'd: "x" -> missing',
        "e: was not there -> null",
    ]


def test_long_texts_are_shown_where_they_begin_to_differ() -> None:
    (line,) = differences("a" * 500 + "x", "a" * 500 + "y")
    assert (len(line) < 200, "x" in line, "y" in line) == (True, True, True)


def test_there_is_an_end() -> None:
    assert differences(list(range(99)), [], most=3)[-1] == "and more"
    assert differences({"a": 1}, {"a": 1}) == []
    assert differences(1, True) == ["body: 1 -> true"]
