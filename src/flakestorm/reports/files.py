"""Where reports lie: writing one so that a reader sees all of it or none, and naming what lies beside it."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from flakestorm.core.regex import later
from flakestorm.errors import Misuse

__all__ = ["below", "write_whole"]

_PLAIN = later(r"\w[\w.-]*(?:/\w[\w.-]*)*\Z")
"""A relative path that is spelled as paths are, in the letters most are made of."""


def below(path: str, base: Path | str | None) -> str:
    """The path as seen from the folder `base`, with forward slashes, if it lies in it; else as it is.

    A report and its tapes can be moved together then, and be read on another system.
    """
    if not path or base is None:
        return path
    near = f"{base}{os.sep}"
    if near != os.sep and path.startswith(near) and _PLAIN.match(path, len(near)):  # as most do, of thousands
        return path[len(near) :]
    try:
        return Path(path).absolute().relative_to(Path(base).absolute()).as_posix()
    except ValueError:
        return path


def write_whole(path: Path | str, content: bytes) -> Path:
    """Write the content to the path, making its folder; an existing file is replaced in one step.

    The temporary file lies beside the target, because a rename is one step only within a file system.

    Raises:
        Misuse: it cannot be written there; the message names the path and says why.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # /dev/stdout, a pipe: nothing to replace
            target.write_bytes(content)
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:80]}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)  # mkstemp made it private; a report is an ordinary file
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise Misuse(f"{path}: the report cannot be written: {error.strerror or error}; choose another -o") from error
    return target
