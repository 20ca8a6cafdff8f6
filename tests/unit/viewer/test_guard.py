import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from flakestorm.viewer.guard import HEADERS, POLICY, Guard

GUARD = Guard("secret", 8700)


async def answer(path: str = "/", method: str = "GET", **headers: str) -> web.StreamResponse:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="shown")

    named = {"Host": "127.0.0.1:8700", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await GUARD.check(make_mocked_request(method, path, headers=named), handler)


async def test_the_token_opens_and_is_kept_in_a_cookie() -> None:
    found = await answer("/?token=secret")
    assert found.status == 200
    assert found.cookies["flakestorm-8700"]["httponly"]
    assert found.cookies["flakestorm-8700"].value == GUARD.reading
    assert (await answer(Cookie=f"flakestorm-8700={GUARD.reading}")).status == 200
    assert (await answer(Authorization="Bearer secret")).status == 200


async def test_without_it_nothing_is_shown() -> None:
    for refused in (
        await answer(),
        await answer("/?token=Secret"),
        await answer("/?token=\u20ac"),
        await answer(Cookie=f"flakestorm-8701={GUARD.reading}"),
        await answer(Cookie="flakestorm-8700=secret"),
        await answer(Authorization="Basic secret"),
    ):
        assert refused.status == 401
        assert not refused.cookies


async def test_other_hosts_and_origins_are_refused_even_with_it() -> None:
    path = "/?token=secret"
    assert (await answer(path, Host="evil.test:8700")).status == 403
    assert (await answer(path, Host="127.0.0.1:1")).status == 403
    assert (await answer(path, Origin="http://evil.test")).status == 403
    assert (await answer(path, Origin="null")).status == 403
    assert (await answer(path, Sec_Fetch_Site="cross-site")).status == 403
    assert (await answer(path, Host="localhost:8700", Origin="http://localhost:8700")).status == 200


async def test_a_link_from_elsewhere_may_open_a_page() -> None:
    to_page = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert (await answer("/?token=secret", **to_page)).status == 200
    assert (await answer("/?token=secret", **{**to_page, "Sec_Fetch_Dest": "iframe"})).status == 403


ACT = {
    "Origin": "http://127.0.0.1:8700",
    "Content-Type": "application/json",
    "Authorization": "Bearer secret",
    "Sec_Fetch_Site": "same-origin",
}


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({}, 200),
        ({"Origin": None}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Origin": "http://localhost:8700"}, 403),  # ours too, but not the host that it is asked of
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": None}, 200),  # an old browser, which sends an Origin all the same
        ({"Content-Type": "text/plain"}, 403),
        ({"Host": "evil.test:8700"}, 403),
        ({"Authorization": None}, 401),
        ({"Authorization": None, "Cookie": f"flakestorm-8700={GUARD.reading}"}, 401),
        ({"Authorization": f"Bearer {GUARD.reading}"}, 401),
    ],
)
async def test_only_our_own_pages_with_the_token_itself_start_anything(other: dict, status: int) -> None:
    headers = {name: value for name, value in {**ACT, **other}.items() if value is not None}
    for method in ("POST", "DELETE"):
        assert (await answer("/api/start", method, **headers)).status == status


async def test_a_token_in_the_address_starts_nothing() -> None:
    headers = {name: value for name, value in ACT.items() if name != "Authorization"}
    assert (await answer("/api/start?token=secret", "POST", **headers)).status == 401


async def test_every_answer_carries_the_policy() -> None:
    for found in (await answer(), await answer("/?token=secret")):
        assert HEADERS.items() <= dict(found.headers).items()
        assert found.headers["Content-Security-Policy"] == POLICY


async def test_what_is_not_found_carries_it_too() -> None:
    async def nowhere(_: web.Request) -> web.Response:
        raise web.HTTPNotFound

    request = make_mocked_request("GET", "/?token=secret", headers={"Host": "127.0.0.1:8700"})
    found = await GUARD.check(request, nowhere)
    assert (found.status, found.headers["Content-Security-Policy"]) == (404, POLICY)
