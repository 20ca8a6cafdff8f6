"""Secrets of many shapes for `programs/leaky_agent.py` to spread, and a world that has some of its own."""

from __future__ import annotations

import json
import re
from typing import Any

from flakestorm.tape.shapes import SHAPES
from upstream import Upstream, document, sse, text

__all__ = ["PLANTED", "SECRETS", "spread"]

SHAPED = [shape[3] for shape in SHAPES]
PLANTED: dict[str, Any] = {
    "headers": {
        "Authorization": "Bearer planted-bearer-0001",
        "X-Api-Key": "planted-api-key-0002",
        "X-Authorization": "planted-authorization-0026",
        "X-Custom": "sk-" + "plantedincustomheader0003",
    },
    "cookie": "planted-cookie-0004",
    "query": "planted-query-0005",
    "userinfo": "planted-userinfo-0006",
    "bodies": [
        json.dumps({"password": "planted-json-0007", "nested": {"client_secret": "planted-nested-0008"}}),
        json.dumps({"arguments": json.dumps({"db_password": 'planted "quoted" 0009'})}),
        "grant_type=x&client_secret=planted-form-0010",
        *(f"here is {each}" for each in SHAPED),
        '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nplanted-multipart-0017\r\n--b--\r\n',
        "<login><password>planted-element-0018</password></login>",
        "> GET /\r\n> Authorization: Bearer planted-line-0019\r\n",
        json.dumps({"file": "DB_PASS='planted-setting-0020'\npassword: planted-yaml-0021\n"}),
        json.dumps(["deploy", "--api-key", "planted-option-0022"]),
        json.dumps([["x-api-key", "planted-paired-0023"], {"name": "TOKEN", "value": "planted-entry-0024"}]),
        json.dumps({"Authorization": ["Bearer planted-listed-0025"]}),
    ],
    "late": "planted-late-0011",
}
RESULT = {"note": "use it", "secret": PLANTED["late"], "url": "https://ann:planted-result-0012@db.test/x"}
SPLIT = "sk-" + "ant-plantedsplit0013abc"
SECRETS = [
    *re.findall(r"[A-Za-z-]*planted[A-Za-z-]*-?\d{4}", json.dumps([PLANTED, RESULT, SPLIT])),
    *('planted "quoted" 0009', "planted-agent-0014", "planted-caller-0015", SPLIT, "CUST-0016"),
    *SHAPED,
]


def spread(up: Upstream) -> None:
    """Let this world answer the agent, with secrets in a result and in a stream."""
    events = [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in ("It is ", SPLIT[:5], SPLIT[5:], ".")]
    for path in ("/header", "/cookies", "/query", "/userinfo", "/body", "/early"):
        up.reply(path, text("CUST-0016 is fine"))
    up.reply("/result", document(RESULT))
    up.reply("/stream", sse(events))
