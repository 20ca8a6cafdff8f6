"""Whose tape it is: a seal by a key that only one user has, so that what a tape names is run for who recorded it alone.

A tape names the command, or the config, that it was recorded from, and later commands run that again. Who can write the
file can write any command into it, and chain every line anew (`lines`). So the last line of a tape that names something
to run carries one more member, `origin`: the HMAC-SHA256, under the user's key, of the chain value that this line has
without it. That value follows from every byte before it and from what the line says, so the seal is of this command, in
this folder, with this standard input and these replies, and of nothing else.

The key is 32 random bytes in the user's state folder, made when the first tape is sealed. A home that cannot be written
to leaves the current project's folder. There it is bound to the very file that was made here: a key that came with
somebody's folder is another key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from flakestorm.core.record import Record
from flakestorm.tape.shelf import STORE

if TYPE_CHECKING:
    from flakestorm.tape.reader import Tape

__all__ = ["SHORTEST", "VARIABLE", "Key", "Named", "Own", "key_file", "known_keys", "made_here", "named_by", "own_key"]

VARIABLE = "FLAKESTORM_TRUST_KEY"
"""The environment variable that gives a key which several users or machines share."""

SHORTEST = 32
"""How many characters such a key has at least."""

_BYTES = 32
_PURPOSE = b"flakestorm tape origin 1\0"
_PATIENCE_MS = 1000  # for another process that has made the file and not yet written the key


class Named(Record, frozen=True):
    """What a tape names to be run again.

    Args:
        argv: a command; cwd: the folder that it runs in.
        config: where no command is named, the config of the agent that is asked.
    """

    argv: tuple[str, ...] = ()
    cwd: str = "."
    config: str = ""

    def __str__(self) -> str:
        """All of it, as the tape has it: what is shown is to be made plain."""
        return f"{shlex.join(self.argv)} (in {self.cwd})" if self.argv else f"the agent of {self.config}"


def named_by(tape: Tape) -> Named | None:
    """What the tape's header names, if anything; what is there and is not of its type is not named."""
    said = tape.header.get("command")
    if not isinstance(said, dict):
        return None
    argv, cwd, config = said.get("argv"), said.get("cwd"), said.get("config")
    words = tuple(str(word) for word in argv) if isinstance(argv, list) else ()
    if words:  # then no config of its own is asked, nor read
        return Named(words, cwd if isinstance(cwd, str) and cwd else ".")
    return Named(config=config) if isinstance(config, str) and config else None


class Key(Record, frozen=True):
    """What tapes are sealed with.

    Args:
        secret: 32 bytes.
    """

    secret: bytes

    def mark(self, chain: bytes) -> str:
        """The seal, in hexadecimal, of a tape whose last line has this chain value without it."""
        return hmac.digest(self.secret, _PURPOSE + chain, "sha256").hex()


class Own(Record, frozen=True):
    """The key to seal with.

    Args:
        key: it; None where none can be had.
        why: why not.
    """

    key: Key | None
    why: str = ""


def own_key(environ: Mapping[str, str] = os.environ, folder: Path = STORE) -> Own:
    """The environment's key, else the user's, else the project's. One that is not there yet is made; nothing is raised.

    Args:
        environ: where `VARIABLE`, `XDG_STATE_HOME` and `HOME` may be.
        folder: of the project's store.
    """
    if said := environ.get(VARIABLE, "").strip():
        return _given(said)
    file = key_file(environ)
    found = Own(None, "there is no home folder") if file is None else _key_in(file, make=True)
    if found.key is not None or (file is not None and os.path.lexists(file)):
        return found  # one that is there and cannot be used is told, not passed by
    beside = _key_in(_project_file(folder), make=True, bound=True)
    return beside if beside.key is not None else Own(None, f"{found.why}; {beside.why}")


def known_keys(environ: Mapping[str, str] = os.environ, folder: Path = STORE) -> Iterator[Key]:
    """Every key whose seal is believed; none is made."""
    if (said := environ.get(VARIABLE, "").strip()) and (given := _given(said).key) is not None:
        yield given
    file = key_file(environ)
    if file is not None and os.path.lexists(file):
        if (own := _key_in(file).key) is not None:
            yield own
    elif (beside := _key_in(_project_file(folder), bound=True).key) is not None:
        yield beside


def made_here(tape: Tape, environ: Mapping[str, str] = os.environ, folder: Path = STORE) -> bool:
    """Whether the tape is, byte for byte, one that was sealed with a key that is known here.

    Raises:
        TapeDamaged: a line cannot be read.
    """
    footer = tape.footer
    if footer is None or footer.origin is None:
        return False
    said, chain = footer.origin
    return any(hmac.compare_digest(key.mark(chain).encode(), said.encode()) for key in known_keys(environ, folder))


def key_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where the user's key lies, by the XDG rules; None for a user without a home."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():
        return state / "flakestorm" / "key"
    try:
        home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:
        return None
    return home / ".local" / "state" / "flakestorm" / "key" if home.is_absolute() else None


def _project_file(folder: Path) -> Path:
    return folder / "trust" / "key"


def _given(text: str) -> Own:
    if len(text) < SHORTEST:
        return Own(None, f"{VARIABLE} has fewer than {SHORTEST} characters; `openssl rand -hex 32` makes one")
    return Own(Key(hashlib.sha256(_PURPOSE + text.encode("utf-8", "surrogateescape")).digest()))


def _key_in(file: Path, *, make: bool = False, bound: bool = False) -> Own:
    """The key that a file holds.

    Args:
        file: its path.
        make: whether to make it where it is not.
        bound: whether the key is good for this very file only.
    """
    try:
        if make and not os.path.lexists(file):
            _make(file, ignored=bound)
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            return _read(file, handle, bound=bound)
        finally:
            os.close(handle)
    except OSError as error:
        return Own(None, f"{file}: no key can be {'made' if make else 'read'} there: {error.strerror or error}")


def _read(file: Path, handle: int, *, bound: bool) -> Own:
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        return Own(None, f"{file} is no regular file")
    if os.name == "posix" and facts.st_uid != os.geteuid():
        return Own(None, f"{file} belongs to another user")
    if os.name == "posix" and stat.S_IMODE(facts.st_mode) & 0o077:
        return Own(None, f"{file} can be read or written by others; `chmod 600 {file}`, or remove it to get a new one")
    for _ in range(_PATIENCE_MS):
        if os.fstat(handle).st_size:
            break
        Event().wait(0.001)
    secret = os.read(handle, _BYTES + 1)
    if len(secret) != _BYTES:
        return Own(None, f"{file} does not hold a key of {_BYTES} bytes; remove it to get a new one")
    if bound:  # when the file last changed cannot be chosen by who packs it
        facts = os.fstat(handle)
        secret = hmac.digest(secret, b"%d %d" % (facts.st_ino, facts.st_ctime_ns), "sha256")
    return Own(Key(secret))


def _make(file: Path, *, ignored: bool) -> None:
    """Make a key, unless somebody is quicker.

    Raises:
        OSError: it cannot be made there.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if ignored:
        with suppress(FileExistsError), file.with_name(".gitignore").open("x", encoding="utf-8") as out:
            out.write("*\n")  # nobody should commit it
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    try:
        os.write(handle, _random())
    except OSError:
        file.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _random() -> bytes:
    """From the system itself: in a process whose draws are virtual, `os.urandom` says what follows from a seed."""
    with suppress(OSError), Path("/dev/urandom").open("rb", buffering=0) as system:
        if len(drawn := system.read(_BYTES)) == _BYTES:
            return drawn
    return os.urandom(_BYTES)
