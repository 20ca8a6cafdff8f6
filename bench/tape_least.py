"""The least that any replay in httpx2's transport does: `python -m bench.tape_least URL TURNS` prints it as JSON.

The request's body is compared with the one that is due, as bytes, and the reply is handed out: nothing is read, looked
up, taken out or proved. What this costs is httpx2's own; no replay under this clock can be below it.
"""

from __future__ import annotations

import json
import sys

import httpx2

from bench.chat import PATH, answer, asked, cpu_us

HEADERS = {"content-type": "application/json", "x-api-key": "sk-ant-none", "anthropic-version": "2023-06-01"}


def main(url: str, turns: int) -> None:
    recorded = [(body, answer(turn)) for turn, body in enumerate(asked(turns))]
    due = iter(recorded)

    def handle_request(request: httpx2.Request) -> httpx2.Response:
        body, said = next(due)
        assert request.read() == body
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=said)

    def ask(body: bytes) -> bytes:
        response = handle_request(httpx2.Request("POST", f"{url}{PATH}", headers=HEADERS, content=body))
        try:
            return response.read()
        finally:
            response.close()

    print(json.dumps({"replay_us": cpu_us(ask, turns)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
