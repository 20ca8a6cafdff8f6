from flakestorm.reports.trend import LAST, Point, curve, line


def points(*values, name="overall") -> list[Point]:
    return [Point("2026", "pass", {} if v is None else {name: v}) for v in values]


def test_a_line_tells_where_it_came_from_and_where_it_went() -> None:
    assert line(points(0.0, 0.5, 1.0)) == "overall ▁▅█ 0.000 -> 1.000 (last 3, +0.500)"
    assert line(points(0.5, 0.25), bars=False) == "overall 0.500 -> 0.250 (last 2, -0.250)"
    assert line(points(0.5, None, 0.25), bars=False) == "overall 0.500 -> 0.250 (last 2, -0.250)"


def test_one_point_is_no_trend() -> None:
    assert line(points(0.5)) == line([]) == line(points(0.5, 0.6), "chaos") == ""


def test_the_newest_are_shown() -> None:
    assert f"(last {LAST}, " in line(points(*[0.5] * (LAST + 9)))
    assert len(curve(points(*[0.5] * (LAST + 9)), "overall", width=10, height=10)) == LAST


def test_a_curve_keeps_its_place_where_a_value_is_missing() -> None:
    assert curve(points(0.0, None, 1.0), "overall", width=100, height=10) == [(0.0, 10.0), (100.0, 0.0)]
    assert curve(points(0.5), "overall", width=100, height=10) == [(0.0, 5.0)]
    assert curve(points(9.0, -1.0), "overall", width=100, height=10) == [(0.0, 0.0), (100.0, 10.0)]
