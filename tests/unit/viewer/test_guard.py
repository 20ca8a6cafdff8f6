from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from flakestorm.viewer.guard import HEADERS, POLICY, Guard

GUARD = Guard("secret", 8700)


async def answer(path: str = "/", **headers: str) -> web.StreamResponse:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="shown")

    named = {"Host": "127.0.0.1:8700", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await GUARD.check(make_mocked_request("GET", path, headers=named), handler)


async def test_the_token_opens_and_is_kept_in_a_cookie() -> None:
    found = await answer("/?token=secret")
    assert found.status == 200
    assert found.cookies["flakestorm-8700"]["httponly"]
    assert (await answer(Cookie="flakestorm-8700=secret")).status == 200
    assert (await answer(Authorization="Bearer secret")).status == 200


async def test_without_it_nothing_is_shown() -> None:
    for refused in (
        await answer(),
        await answer("/?token=Secret"),
        await answer("/?token=\u20ac"),
        await answer(Cookie="flakestorm-8701=secret"),
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
