"""The bytes of a tape file: plain, or compressed where its name ends in `.zst`.

Either grows by whole lines: a compressed line is flushed as a block of its own, so a reader of a file whose writer was
killed gets every line that was written. Compressed files are recognised by what they hold, and unpacked as far as a
line is asked for, never further.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from flakestorm.errors import TapeDamaged

__all__ = ["MAX_LINE_BYTES", "MAX_UNPACKED_BYTES", "Growing", "lines_of"]

MAX_LINE_BYTES = 256 << 20
"""The longest line that is read: three bodies of 64 MB fit, even in base64."""

MAX_UNPACKED_BYTES = 8 << 30
"""A compressed tape that unpacks to more than this is refused."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_STEP = 1 << 18
_WINDOW_LOG = 27  # what a reader may have to hold while it unpacks: 128 MB


class Growing:
    """A file that lines are added to.

    Args:
        path: made, or replaced by the first line's writing.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._packer: Any = _zstd().ZstdCompressor() if path.suffix == ".zst" else None
        self._raw: io.RawIOBase = path.open("wb", buffering=0)

    @property
    def closed(self) -> bool:
        return self._raw.closed

    def append(self, line: bytes) -> bool:
        """A line with its line end. Tells whether the file was open for it.

        Raises:
            OSError: it cannot be written.
        """
        raw = self._raw
        if raw.closed:
            return False
        if self._packer is not None:
            line = self._packer.compress(line, self._packer.FLUSH_BLOCK)
        if (written := raw.write(line) or 0) < len(line):
            self._write(line[written:])
        return True

    def close(self, *, finish: bool = True) -> None:
        """Nothing more will come.

        Args:
            finish: whether what was written is whole.

        Raises:
            OSError: it cannot be written.
        """
        try:
            if finish and self._packer is not None and not self._raw.closed:
                self._write(self._packer.flush(self._packer.FLUSH_FRAME))
        finally:
            self._raw.close()

    def _write(self, data: bytes) -> None:
        written = self._raw.write(data) or 0
        while written < len(data):
            written += self._raw.write(memoryview(data)[written:]) or 0


def lines_of(path: Path, limit: int) -> Generator[bytes, None, None]:
    """The lines of a tape file, with their line ends; a last one may have none.

    Args:
        limit: how long a line may be, in bytes; of a longer one, one byte more is given.

    Raises:
        OSError: it cannot be read.
        TapeDamaged: it is compressed, and cannot be unpacked.
    """
    with path.open("rb") as file:
        packed = file.read(4) == _MAGIC
        file.seek(0)
        if packed:
            with closing(_unpacked(path, file)) as pieces:
                yield from _cut(pieces, limit)
        else:
            while line := file.readline(limit + 1):
                yield line


def _unpacked(path: Path, file: io.BufferedReader) -> Any:
    zstd = _zstd()
    options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    unpacker, total = zstd.ZstdDecompressor(options=options), 0
    try:
        while not unpacker.eof:
            data = file.read(_STEP) if unpacker.needs_input else b""
            if unpacker.needs_input and not data:
                return  # its writer was interrupted; what was written is there
            piece = unpacker.decompress(data, max_length=_STEP)
            total += len(piece)
            if total > MAX_UNPACKED_BYTES:
                raise TapeDamaged(f"{path} unpacks to more than {MAX_UNPACKED_BYTES} bytes; no tape is that long")
            yield piece
    except zstd.ZstdError as error:
        raise TapeDamaged(f"{path} cannot be unpacked: {error}; it was edited or damaged") from error
    if unpacker.unused_data or file.read(1):
        raise TapeDamaged(f"{path}: there is more after the compressed tape; it was added to")


def _cut(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for end in whole:
            line = b"".join((*held, end, b"\n"))
            yield line if len(line) <= limit else line[: limit + 1]
            held, size = [], 0
        if rest:
            held.append(rest)
            size += len(rest)
            if size > limit:
                yield b"".join(held)[: limit + 1]
                return
    if held:
        yield b"".join(held)


def _zstd() -> Any:
    """The module for zstd: the standard library's from Python 3.14 on, and the same as a package before."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
