"""What the targets for exports share."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from flakestorm.errors import Misuse
from flakestorm.importers.files import read_runs
from flakestorm.importers.taping import exchanges_of
from fuzz.material import Bytes

__all__ = ["imported"]

_FILE = Path("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp", f"flakestorm-fuzz-{os.getpid()}.export")  # noqa: PTH112


def imported(form: str, words: Sequence[str], data: bytes) -> None:
    """Read this as an export of that form."""
    source = Bytes(data)
    way = source.below(4)
    if way == 0:
        content = source.rest()
    elif way == 1:
        content = json.dumps(source.value(words)).encode()
    else:
        content = json.dumps(_shaped(form, source, words)).encode()
    _FILE.write_bytes(content)
    try:
        _, runs = read_runs(_FILE, form=form if way else "auto")
    except Misuse as error:
        assert "\n" not in str(error)
        return
    finally:
        _FILE.unlink()
    for run in runs:
        exchanges_of(run.crossings)


def _shaped(form: str, source: Bytes, words: Sequence[str]) -> object:
    """The outline of an export, with anything in it."""
    inner = [source.value(words) for _ in range(source.below(4))]
    if form == "vcr":
        request = {"method": "POST", "uri": "https://api.openai.com/v1/chat/completions", "body": source.value(words)}
        response = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": source.value(words)}}
        pair = {"request": request, "response": response}
        return {"version": 1, "interactions": [pair, *inner]}
    if form == "otel":
        span = {"traceId": "a", "spanId": "b", "name": source.word(words), "startTimeUnixNano": "1"}
        attributes = [{"key": source.word(words), "value": {"stringValue": source.value(words)}} for _ in range(3)]
        return {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": attributes}, *inner]}]}]}
    observation = {"id": "a", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z", "name": "x"}
    filled = {
        **observation,
        source.word(words): source.value(words),
        "input": source.value(words),
        "output": source.value(words),
    }
    return {"id": "t", "observations": [filled, *inner]}
