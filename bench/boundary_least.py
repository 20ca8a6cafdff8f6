"""The least that any recorder in Python does: as `boundary_ours`, with one line of JSON per exchange and nothing else.

No secret is taken out, nothing is chained, matched, named or stored once; the line is what the client sent and got, at
the place where flakestorm and tracefork stand. Replies pass as they come, or, with `whole`, are read to their end
before the client gets them, as tracefork does.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx2

from bench.agents import SDKS
from bench.meter import added, first_token_ratio

_send = httpx2.HTTPTransport.handle_request


class _Body(httpx2.SyncByteStream):
    """A reply's body on its way: what has passed is told when it is closed."""

    def __init__(self, stream: Any, ended: Callable[[bytes], None]) -> None:
        self._stream, self._ended, self._pieces = stream, ended, list[bytes]()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._pieces.append(piece)
            yield piece

    def close(self) -> None:
        self._stream.close()
        self._ended(b"".join(self._pieces))


@contextmanager
def _noting(tape: Path, *, whole: bool) -> Iterator[None]:
    with tape.open("wb", buffering=0) as file:

        def handle_request(transport: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
            at = time.monotonic()
            body = request.read()
            response = _send(transport, request)

            def ended(said: bytes) -> None:
                line = {
                    "at": at,
                    "took": time.monotonic() - at,
                    "method": request.method,
                    "url": str(request.url),
                    "headers": _plain(request.headers.raw),
                    "body": body.decode(),
                    "status": response.status_code,
                    "reply_headers": _plain(response.headers.raw),
                    "reply": said.decode(),
                }
                file.write(json.dumps(line).encode() + b"\n")

            if whole:
                ended(response.read())
            else:
                response.stream = _Body(response.stream, ended)
            return response

        httpx2.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]
        try:
            yield
        finally:
            httpx2.HTTPTransport.handle_request = _send  # type: ignore[method-assign]


def _plain(headers: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def main(sdk: str, url: str, calls: int, rounds: int, streams: int, *, whole: bool) -> None:
    api = SDKS[sdk]
    client = api.client(url)

    def ask_all() -> None:
        for _ in range(calls):
            api.ask(client)

    @contextmanager
    def bare() -> Iterator[Callable[[], None]]:
        yield ask_all

    @contextmanager
    def noted() -> Iterator[Callable[[], None]]:
        with _noting(tape, whole=whole):
            yield ask_all

    def first_noted_s() -> float:
        with _noting(tape, whole=whole):
            return float(api.first_token_s(client))

    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "tape.jsonl"
        found = added(bare, noted, calls=calls, rounds=rounds)
        assert len(tape.read_bytes().splitlines()) == calls
        found["first_token"] = first_token_ratio(lambda: api.first_token_s(client), first_noted_s, rounds=streams)
    print(json.dumps({**found, "sdk": f"{sdk} {version(sdk)}"}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), whole=sys.argv[6:] == ["whole"])
