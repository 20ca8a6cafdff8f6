import asyncio
import socket

import httpx
import pytest

from flakestorm.errors import Misuse
from flakestorm.viewer.serving import serving


async def test_it_serves_on_this_machine_while_entered(tmp_path) -> None:
    async with serving(tmp_path) as address:
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(address)).status_code == 200
        port = httpx.URL(address).port
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


async def test_what_is_no_http_leaves_no_trace_in_the_log(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(address).port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: \x1b[31m\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()
    assert caplog.text == ""


async def test_every_viewer_has_a_token_of_its_own(tmp_path) -> None:
    async with serving(tmp_path) as one, serving(tmp_path) as other:
        assert one.partition("token=")[2] != other.partition("token=")[2]


async def test_a_port_that_is_taken_is_named(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Misuse, match=f"port {port} of 127.0.0.1 cannot be used"):
            async with serving(tmp_path, port):
                pass
