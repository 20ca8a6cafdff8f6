from __future__ import annotations

import asyncio
import shutil

import pytest

from flakestorm.boundary.door import REFUSED
from flakestorm.boundary.http2 import refusal
from gateway_support import held


async def test_http_2_from_the_first_byte_is_refused_in_its_own_language(caplog: pytest.LogCaptureFixture) -> None:
    async with held() as gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.gateway.port)
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        said = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert said == refusal(REFUSED)
    assert REFUSED in caplog.text


async def test_the_preface_is_only_that_at_the_beginning_of_a_connection() -> None:
    async with held() as gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.gateway.port)
        writer.write(b"POST /nowhere HTTP/1.1\r\nHost: h\r\nContent-Length: 24\r\nConnection: close\r\n\r\n")
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 404 ")
        writer.close()
        await writer.wait_closed()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
async def test_curl_says_that_http_1_1_is_required() -> None:
    async with held() as gate:
        words = ("curl", "-sS", "-v", "--noproxy", "*", "--http2-prior-knowledge", f"http://{gate.authority}/x")
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        _, err = await process.communicate()
    assert process.returncode != 0
    assert "GOAWAY, error=13" in err.decode()
