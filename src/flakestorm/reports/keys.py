"""Ed25519 keys that certificates are signed with: a project's own, or one that is given."""

from __future__ import annotations

import os
import stat
import tempfile
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from flakestorm.errors import MissingExtra, Misuse
from flakestorm.reports.dsse import EXTRA
from flakestorm.tape.shelf import keep_from_git

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["FILE", "VARIABLE", "Key", "key_for", "own_key", "public_key", "read_key"]

FILE = "certificate.key"
"""The project's own key, in its store's folder."""

VARIABLE = "FLAKESTORM_SIGNING_KEY"
"""The environment variable that gives a key: as PEM, as base64 of its 32 bytes, or by the path of such a file."""

LIMIT_BYTES = 64 * 1024
_FORMS = "expected an unencrypted Ed25519 private key, as PEM or as base64 of its 32 bytes"


class Key:
    """A private key; fulfils `dsse.Signs`."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @property
    def public(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data)


def key_for(given: Path | None, environ: Mapping[str, str], folder: Path) -> Key:
    """The key to sign with: the one given, else the environment's, else the project's own.

    Args:
        given: a file.
        environ: where `VARIABLE` may be.
        folder: of the project's store; its own key is made there when there is none.

    Raises:
        Misuse: it cannot be read, or is no Ed25519 private key.
        MissingExtra: the extra `signing` is not installed.
    """
    if given is not None:
        return read_key(_content(given), str(given))
    value = environ.get(VARIABLE, "").strip()
    if value:
        named = "\n" not in value and len(value) < 1000 and Path(value).is_file()
        return read_key(_content(Path(value)) if named else value.encode(), VARIABLE)
    return own_key(folder)


def own_key(folder: Path) -> Key:
    """The project's own key; made, once, when there is none. Only its owner can read it.

    Raises:
        Misuse: it cannot be read or made, others can read it, or it is no Ed25519 private key.
        MissingExtra: the extra `signing` is not installed.
    """
    file = folder / FILE
    if not file.exists():
        _make(file)
    if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise Misuse(f"{file} can be read by others; `chmod 600 {file}`, or remove it to get a new one")
    return read_key(_content(file), str(file))


def read_key(content: bytes, where: str) -> Key:
    """A key from its text.

    Raises:
        Misuse: it is no Ed25519 private key; the message names `where` and shows nothing of it.
        MissingExtra: the extra `signing` is not installed.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key
    except ImportError as error:
        raise _missing() from error
    try:
        if b"-----BEGIN OPENSSH" in content:
            key: object = load_ssh_private_key(content, None)
        elif b"-----BEGIN" in content:
            key = load_pem_private_key(content, None)
        else:
            key = Ed25519PrivateKey.from_private_bytes(b64decode(content.strip(), validate=True))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None  # what went wrong may quote the key
    if not isinstance(key, Ed25519PrivateKey):
        raise Misuse(f"{where}: this is no key to sign with; {_FORMS}")
    return Key(key)


def public_key(text: str) -> bytes:
    """A public key by its base64, or by the path of a file that holds it so or as PEM.

    Raises:
        Misuse: it is none.
        MissingExtra: the extra `signing` is not installed.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise _missing() from error
    content = _content(Path(text)) if Path(text).is_file() else text.encode()
    with suppress(ValueError, TypeError):
        if b"-----BEGIN" in content:
            found = load_pem_public_key(content)
            if isinstance(found, Ed25519PublicKey):
                return found.public_bytes_raw()
        else:
            return Ed25519PublicKey.from_public_bytes(b64decode(content.strip(), validate=True)).public_bytes_raw()
    raise Misuse(f"{text[:200]!r} is no public key; give its base64 (`public_key` in an envelope), or a PEM file")


def _make(file: Path) -> None:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    except ImportError as error:
        raise _missing() from error
    content = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        keep_from_git(file.parent)  # nobody should commit it
        handle, part = tempfile.mkstemp(prefix=f".{FILE}.", dir=file.parent)  # for its owner alone, from the start
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(content)
            with suppress(FileExistsError):  # somebody was quicker: then theirs is the project's key
                os.link(part, file)
        finally:
            Path(part).unlink()
    except OSError as error:
        raise Misuse(
            f"{file}: no key can be made there: {error.strerror or error}; give one with --key or {VARIABLE}"
        ) from error


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(LIMIT_BYTES)
    except OSError as error:
        raise Misuse(f"{file}: the key cannot be read: {error.strerror or error}") from error


def _missing() -> MissingExtra:
    return MissingExtra("signing a certificate", EXTRA)
