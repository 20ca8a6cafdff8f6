import stat
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from flakestorm.errors import MissingExtra, Misuse
from flakestorm.reports.keys import FILE, VARIABLE, key_for, own_key, public_key, read_key

SEED = bytes(range(32))
PRIVATE = Ed25519PrivateKey.from_private_bytes(SEED)
PUBLIC = PRIVATE.public_key().public_bytes_raw()
PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
SSH = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def test_the_projects_own_is_made_once_and_is_private(tmp_path) -> None:
    folder = tmp_path / ".flakestorm"
    with ThreadPoolExecutor(8) as pool:
        made = {key.public for key in pool.map(lambda _: own_key(folder), range(40))}
    assert made == {own_key(folder).public}
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert (folder / ".gitignore").read_text() == "*\n"
    assert [p.name for p in folder.iterdir() if p.name.startswith(".cert")] == []
    (folder / FILE).chmod(0o644)
    with pytest.raises(Misuse, match="chmod 600"):
        own_key(folder)


@pytest.mark.parametrize("content", [PEM, SSH, b64encode(SEED), b64encode(SEED) + b"\n"])
def test_a_key_comes_in_the_usual_forms(content) -> None:
    assert read_key(content, "x").public == PUBLIC


def test_a_given_file_goes_before_the_environment_and_that_before_the_projects_own(tmp_path) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(PEM)
    other = b64encode(bytes(32)).decode()
    assert key_for(file, {VARIABLE: other}, tmp_path).public == PUBLIC
    assert key_for(None, {VARIABLE: str(file)}, tmp_path).public == PUBLIC
    assert key_for(None, {VARIABLE: PEM.decode()}, tmp_path).public == PUBLIC
    assert key_for(None, {VARIABLE: other}, tmp_path).public != PUBLIC
    assert not (tmp_path / FILE).exists()
    key_for(None, {}, tmp_path)
    assert (tmp_path / FILE).exists()


def test_where_no_key_can_be_made_it_is_said_so(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misuse, match=r"no key can be made there.*give one with --key"):
        own_key(tmp_path / "file")


EC = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("content", [b"", b"secretsecret", b64encode(bytes(31)), EC, PEM[:60], SSH[:90]])
def test_what_is_no_key_is_refused_and_not_shown(content) -> None:
    with pytest.raises(Misuse, match="the-place: this is no key to sign with") as error:
        read_key(content, "the-place")
    assert "secretsecret" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(Misuse, match=r"none\.pem: the key cannot be read"):
        key_for(tmp_path / "none.pem", {}, tmp_path)


def test_public_keys(tmp_path) -> None:
    file = tmp_path / "key.pub"
    for content in (
        PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        b64encode(PUBLIC),
    ):
        file.write_bytes(content)
        assert public_key(str(file)) == PUBLIC
    assert public_key(b64encode(PUBLIC).decode()) == PUBLIC
    for wrong in ("x", "", b64encode(SEED[:9]).decode()):
        with pytest.raises(Misuse, match="is no public key"):
            public_key(wrong)


def test_without_the_extra_it_is_named(tmp_path, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("cryptography.")]:
        monkeypatch.setitem(sys.modules, name, None)
    for ask in (lambda: own_key(tmp_path), lambda: read_key(PEM, "x"), lambda: public_key("x")):
        with pytest.raises(MissingExtra, match=r"pip install 'flakestorm\[signing\]'"):
            ask()
