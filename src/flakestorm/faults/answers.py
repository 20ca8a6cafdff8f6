"""How a tool's failure looks, to whichever fault stages one, and what the settings of such faults are by default."""

from __future__ import annotations

from http import HTTPStatus

import orjson

from flakestorm.config.model import ToolFault
from flakestorm.core.call import Call, Reply
from flakestorm.wire.mcp.protocol import Mcp
from flakestorm.wire.mcp.reply import failed

__all__ = ["ERROR_CODE", "TIMEOUT_MS", "failure", "failure_words", "phrase"]

TIMEOUT_MS = 30_000
ERROR_CODE = 503


def failure(spec: ToolFault, call: Call) -> Reply:
    """The tool's own refusal: HTTP status `error_code` (503) and the JSON body `{"error": message}`.

    `message` defaults to the standard phrase of the status, e.g. `Service Unavailable`. An MCP tool answers with a
    result that says `isError` and `Error: 503 Service Unavailable`.
    """
    if call.wire == Mcp.name:
        return failed(call, f"Error: {failure_words(spec)}")
    status = _status(spec)
    body = orjson.dumps({"error": phrase(status) if spec.message is None else spec.message})
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return Reply(status, headers, body, reason=phrase(status))


def failure_words(spec: ToolFault) -> str:
    """Status and message of `failure`, e.g. `503 Service Unavailable`."""
    status = _status(spec)
    return f"{status} {phrase(status) if spec.message is None else spec.message}".rstrip()


def phrase(status: int) -> str:
    """The standard phrase of an HTTP status, empty where there is none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:  # a status nobody has named, e.g. 599
        return ""


def _status(spec: ToolFault) -> int:
    return ERROR_CODE if spec.error_code is None else spec.error_code
