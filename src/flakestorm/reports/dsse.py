"""DSSE envelopes: bytes, and who signed them with Ed25519.

What is signed is DSSE's pre-authentication encoding of payload and payload type, so any tool that knows DSSE can check
an envelope. Here the envelope's own bytes count too: DSSE leaves the key's id, spaces and the spelling of base64
unsigned, and whoever hands over evidence should not have to explain why a byte of it is another. So `opened` takes an
envelope only as `sealed` writes it.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Protocol

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode
from msgspec.json import format as laid_out

from flakestorm.errors import MissingExtra

__all__ = ["EXTRA", "PAYLOAD_TYPE", "Signs", "keyid_of", "opened", "pae", "sealed"]

EXTRA = "signing"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


class Signs(Protocol):
    """A private key."""

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""

    def sign(self, data: bytes) -> bytes:
        """The Ed25519 signature of these bytes."""


class _Signature(Struct, forbid_unknown_fields=True):
    keyid: str
    sig: str
    public_key: str


class _Envelope(Struct, forbid_unknown_fields=True):
    payload: str
    payloadType: str  # noqa: N815 - DSSE's word
    signatures: list[_Signature]


def pae(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """What DSSE signs: type and payload, each with its length in front."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def keyid_of(public: bytes) -> str:
    """A public key's id: the sha256 of its 32 bytes, in hexadecimal digits."""
    return hashlib.sha256(public).hexdigest()


def sealed(payload: bytes, signers: Sequence[Signs]) -> bytes:
    """The envelope as JSON.

    Args:
        payload: an in-toto statement.
        signers: whose signatures it gets.
    """
    signed = pae(payload)
    signatures = [_Signature(keyid_of(s.public), _text(s.sign(signed)), _text(s.public)) for s in signers]
    return _written(_Envelope(_text(payload), PAYLOAD_TYPE, signatures))


def opened(content: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """The payload of an envelope, and the public keys of those who signed it; every signature is valid then.

    A valid signature says that nothing was changed since the owner of that key signed, not who the owner is.

    Raises:
        ValueError: it is no envelope, was changed, or a signature is not valid; the message says which.
        MissingExtra: the extra `signing` is not installed.
    """
    try:
        envelope = decode(content, type=_Envelope)
        payload = b64decode(envelope.payload, validate=True)
        keys = [b64decode(each.public_key, validate=True) for each in envelope.signatures]
        signatures = [b64decode(each.sig, validate=True) for each in envelope.signatures]
    except (DecodeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not a DSSE envelope with public keys: {error}") from error
    if envelope.payloadType != PAYLOAD_TYPE:
        raise ValueError(f"its payload type is not {PAYLOAD_TYPE}")
    if not keys:
        raise ValueError("nobody signed it")
    for key, signature in zip(keys, signatures, strict=True):
        if not _holds(key, signature, pae(payload)):
            raise ValueError(f"the signature of key {keyid_of(key)[:16]} is not that of its payload")
    plain = [
        _Signature(keyid_of(key), _text(signature), _text(key)) for key, signature in zip(keys, signatures, strict=True)
    ]
    if _written(_Envelope(_text(payload), PAYLOAD_TYPE, plain)) != content:
        raise ValueError("the envelope is not as it was written: bytes beside its payload and signatures were changed")
    return payload, tuple(keys)


def _holds(key: bytes, signature: bytes, data: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise MissingExtra("checking a signature", EXTRA) from error
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _written(envelope: _Envelope) -> bytes:
    return laid_out(encode(envelope), indent=2) + b"\n"


def _text(content: bytes) -> str:
    return b64encode(content).decode()
