"""Envelopes, checked by tools that know nothing of this code base: securesystemslib and openssl."""

import json
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from flakestorm.errors import MissingExtra
from flakestorm.reports import dsse
from flakestorm.reports.keys import Key

KEYS = [Key(Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32)) for n in range(3)]


@given(st.binary(max_size=200), st.integers(1, 3))
def test_what_is_sealed_opens_and_other_tools_agree(payload, signers) -> None:
    keys = KEYS[:signers]
    content = dsse.sealed(payload, keys)
    assert dsse.opened(content) == (payload, tuple(key.public for key in keys))
    envelope = Envelope.from_dict(json.loads(content))
    known = [SSlibKey(dsse.keyid_of(k.public), "ed25519", "ed25519", {"public": k.public.hex()}) for k in keys]
    assert envelope.pae() == dsse.pae(payload)
    assert len(envelope.verify(known, signers)) == signers
    envelope.payload += b"x"
    with pytest.raises(VerificationError):
        envelope.verify(known, 1)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here")
def test_openssl_agrees(tmp_path) -> None:
    content = json.loads(dsse.sealed(b'{"a": 1}', KEYS[:1]))
    [signature] = content["signatures"]
    public = Ed25519PublicKey.from_public_bytes(b64decode(signature["public_key"]))
    (tmp_path / "key").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    (tmp_path / "sig").write_bytes(b64decode(signature["sig"]))
    (tmp_path / "pae").write_bytes(b'DSSEv1 28 application/vnd.in-toto+json 8 {"a": 1}')
    words = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key", "-rawin", "-in", "pae", "-sigfile", "sig"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


@given(st.data())
def test_one_changed_byte_anywhere_is_noticed(data) -> None:
    content = dsse.sealed(b'{"what": "was found"}', KEYS[:2])
    at = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    with pytest.raises(ValueError):
        dsse.opened(content[:at] + bytes([other]) + content[at + 1 :])


@pytest.mark.parametrize("change", [
    lambda e: e["signatures"][0].update(keyid="0" * 64),
    lambda e: e["signatures"][0].update(public_key=b64encode(KEYS[1].public).decode()),
    lambda e: e["signatures"].clear(),
    lambda e: e.update(payloadType="text/plain"),
    lambda e: e.update(more=1),
    lambda e: e["signatures"][0].pop("public_key"),
    lambda e: e.update(payload="*"),
])  # fmt: skip
def test_other_changes_are_noticed_too(change) -> None:
    envelope = json.loads(dsse.sealed(b"{}", KEYS[:1]))
    change(envelope)
    with pytest.raises(ValueError):
        dsse.opened(json.dumps(envelope, indent=2).encode() + b"\n")


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{", b"[" * 100_000])
def test_what_is_no_envelope_is_said_so(content) -> None:
    with pytest.raises(ValueError, match="not a DSSE envelope"):
        dsse.opened(content)


def test_without_the_extra_it_is_named(monkeypatch) -> None:
    content = dsse.sealed(b"{}", KEYS[:1])
    for name in [name for name in sys.modules if name.startswith("cryptography.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"pip install 'flakestorm\[signing\]'"):
        dsse.opened(content)
