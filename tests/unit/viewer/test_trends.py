from typing import Any

from flakestorm.store.sqlite import Entry
from flakestorm.viewer.trends import LAST, trends


def entry(n: int, value: float | None, command: str = "ci", **changes: Any) -> Entry:
    said: dict[str, Any] = {"done": True, "exit_code": 0, "scores": {"overall": {"value": value}}} | changes
    return Entry(f"id-{n}", command, "flakestorm.yaml", f"2026-01-01T00:00:{n:02}Z", "pass", runs=1, **said)


def test_a_trend_runs_from_the_oldest_to_the_newest() -> None:
    [found] = trends([entry(3, 0.9), entry(2, None), entry(1, 0.5)])
    assert [point["id"] for point in found["points"]] == ["id-1", "id-2", "id-3"]
    assert found["lines"] == [{"name": "overall", "values": [0.5, None, 0.9], "shown": ["0.500", None, "0.900"]}]


def test_contract_scores_are_brought_to_the_same_scale() -> None:
    [found] = trends([entry(n, None, scores={"contract": {"value": 50.0 * n}}) for n in (2, 1)])
    assert found["lines"][0]["values"] == [0.5, 1.0]


def test_what_was_not_finished_is_no_point() -> None:
    assert trends([entry(2, 0.9), entry(1, 0.5, done=False)]) == []
    assert trends([entry(2, 0.9), entry(1, 0.5, exit_code=130)]) == []
    assert trends([entry(2, 0.9), entry(1, 0.5, scores={})]) == []


def test_commands_are_apart_and_the_busiest_is_first() -> None:
    found = trends([*(entry(n, 0.1, "run") for n in range(2)), *(entry(n, 0.2) for n in range(LAST + 5))])
    assert [(each["command"], len(each["points"])) for each in found] == [("ci", LAST), ("run", 2)]


def test_nothing_that_failed_shows_as_full_marks() -> None:
    [found] = trends([entry(2, 0.9999), entry(1, 1.0)])
    assert found["lines"][0]["shown"] == ["1.000", "0.999"]
    [found] = trends([entry(n, None, scores={"contract": {"value": 99.99}}) for n in (2, 1)])
    assert found["lines"][0]["shown"] == ["0.999", "0.999"]
