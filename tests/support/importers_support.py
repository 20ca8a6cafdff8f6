"""Cassettes for tests of the importers: small ones written here, and the real ones that others recorded."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from flakestorm.importers.files import import_file
from flakestorm.tape.reader import Tape, describe

DATA = Path(__file__).parents[2].parent / "shared" / "data"
URL = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "gpt-4o", "messages": [{"role": "user", "content": "a flight to Ålesund"}]}
SAID = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Høyt ☃"}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}
JSON = {"content-type": ["application/json"]}
SSE = {"content-type": ["text/event-stream; charset=utf-8"]}


def said_json() -> str:
    return json.dumps(SAID, ensure_ascii=False)


def said_sse() -> str:
    """The same answer, streamed in four events."""
    deltas = [({"role": "assistant", "content": "Høyt"}, None), ({"content": " ☃"}, None), ({}, "stop")]
    chunks = [
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-4o",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        for delta, finish in deltas
    ]
    return "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def request(**changes: Any) -> dict[str, Any]:
    """A stored request; None as a change leaves the part out."""
    parts = {"method": "POST", "uri": URL, "headers": JSON, "body": json.dumps(ASKED), **changes}
    return {name: value for name, value in parts.items() if value is not None}


def response(**changes: Any) -> dict[str, Any]:
    """A stored response, likewise."""
    whole = {"status": {"code": 200, "message": "OK"}, "headers": JSON, "body": {"string": said_json()}, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def cassette(*pairs: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """A cassette of these requests and responses; of one, if none are given."""
    return {
        "interactions": [{"request": asked, "response": said} for asked, said in pairs or [(request(), response())]],
        "version": 1,
    }


def write_yaml(path: Path, document: Any) -> Path:
    path.write_bytes(yaml.dump(document, encoding="utf-8"))
    return path


def imported(file: Path, **options: Any) -> dict[str, Any]:
    """The tape made of a file, as `tapes show --format json` tells it; its seals are checked."""
    with TemporaryDirectory() as folder:  # never beside what others recorded
        tape = Tape.open(import_file(file, Path(folder) / f"{file.stem}.tape", **options).tape)
        tape.verify()
        return describe(tape)
