import re
from importlib.resources import files

from flakestorm.viewer.app import PAGES, make_app
from flakestorm.viewer.guard import Guard


def served(tmp_path) -> set[str]:
    routes = make_app(tmp_path, Guard("t", 1)).router.routes()
    return {str(route.resource.canonical) for route in routes if route.resource is not None}


def test_every_file_of_the_front_end_is_served_and_no_other(tmp_path) -> None:
    own = {f"/static/{each.name}" for each in files("flakestorm.viewer").joinpath("static").iterdir()}
    assert {path for path in served(tmp_path) if path.startswith("/static/")} == (
        own - {"/static/index.html"} | {"/static/report.css", "/static/shared.js"}
    )


def test_the_front_ends_imports_and_pages_are_there(tmp_path) -> None:
    static = files("flakestorm.viewer").joinpath("static")
    for each in static.iterdir():
        for name in re.findall(r'from "\./(\w+\.js)"', each.read_text(encoding="utf-8")):
            assert f"/static/{name}" in served(tmp_path)
    main = static.joinpath("main.js").read_text(encoding="utf-8")
    known = re.search(r"const PAGES = \{(.*?)\}", main)
    assert known is not None
    assert tuple(re.findall(r'"(/\w*)"', known[1])) == PAGES


def test_all_but_two_addresses_only_read(tmp_path) -> None:
    routes = list(make_app(tmp_path, Guard("t", 1)).router.routes())
    assert {route.method for route in routes} == {"GET", "HEAD", "POST"}
    posts = {str(route.resource.canonical) for route in routes if route.method == "POST" and route.resource is not None}
    assert posts == {"/api/start", "/api/cancel"}


def test_the_front_end_makes_no_markup_of_strings_and_names_no_other_host() -> None:
    for each in files("flakestorm.viewer").joinpath("static").iterdir():
        text = each.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)
        assert set(re.findall(r"https?://[\w./-]+", text)) <= {"http://www.w3.org/2000/svg"}
