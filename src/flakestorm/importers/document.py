"""A recording's file as plain data: JSON or YAML, perhaps gzipped, never more than can be held.

What the file is called does not matter; its first bytes tell what it is. Several JSON documents, one on each line, are
a list of them.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from flakestorm.core.volume import holds_more
from flakestorm.importers.plain_yaml import MAX_VALUES, load_yaml

__all__ = ["MAX_BYTES", "read_document"]

MAX_BYTES = 64 * 2**20
"""A larger file, or one that unpacks to more, is refused."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


def read_document(path: Path) -> Any:
    """What the file says, as dicts, lists, texts, bytes, numbers, truth values and None.

    Raises:
        ValueError: it cannot be read, is out of bounds, or is neither JSON nor YAML; the message is one line.
    """
    data = _content(path).removeprefix(_BOM)
    if not data.strip():
        raise ValueError("it is empty")
    if data.lstrip()[:1] not in (b"{", b"["):
        return load_yaml(data)
    try:
        return _load_json(data)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # a document on each line, as collectors write them
            try:
                return [_load_json(line) for line in data.splitlines() if line.strip()]
            except json.JSONDecodeError:
                pass
        try:
            return load_yaml(data)  # a YAML document may begin like that too
        except ValueError:
            raise ValueError(f"it is not valid JSON: line {error.lineno}: {error.msg}") from None


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == _GZIP:
                with gzip.GzipFile(fileobj=file) as packed:
                    data = packed.read(MAX_BYTES + 1)
            else:
                data = file.read(MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise ValueError("it is gzip data, and damaged or cut short") from None
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MB")
    return data


def _load_json(data: bytes) -> Any:
    """Recorders in Python write with the standard library's encoder, so NaN and half surrogate pairs may occur, which
    only that library's decoder reads.

    Raises:
        json.JSONDecodeError: it is not JSON.
        ValueError: it is out of bounds.
    """
    if holds_more(data, MAX_VALUES):
        raise ValueError(f"it holds more than {MAX_VALUES:,} values")
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
