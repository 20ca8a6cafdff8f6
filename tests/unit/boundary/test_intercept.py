from __future__ import annotations

import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flakestorm.boundary.intercept import Interception, interception
from flakestorm.boundary.trust import Trust
from tls_support import Private


@pytest.fixture
def intercept() -> Iterator[Interception]:
    it = interception()
    assert it is not None
    yield it
    it.close()


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str | None:
    """The protocol both agree on, once each has accepted the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    while waiting:
        for end in tuple(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
    return ends[1].selected_alpn_protocol()


def client(intercept: Interception) -> ssl.SSLContext:
    """One that trusts what an agent is told to trust, as strictly as Python can."""
    context = ssl.create_default_context(cafile=intercept.variables(Trust(), {})["SSL_CERT_FILE"])
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


@pytest.mark.parametrize("host", ["api.example.com", "127.0.0.1", "::1", "localhost", "bücher.example"])
def test_it_passes_for_any_host(intercept: Interception, host: str) -> None:
    assert shaken(intercept.context(host), client(intercept), host) == "http/1.1"


def test_a_certificate_is_for_its_host_only_and_made_once(intercept: Interception) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(intercept.context("one.test"), client(intercept), "two.test")
    assert intercept.context("one.test") is intercept.context("one.test")


def test_a_host_without_a_name_has_no_certificate(intercept: Interception) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        intercept.context("under_score.test")


def test_nobody_else_is_told_to_trust_it(intercept: Interception) -> None:
    for other in (ssl.create_default_context(), client(closed := interception() or intercept)):
        with pytest.raises(ssl.SSLCertVerificationError):
            shaken(intercept.context("api.test"), other, "api.test")
    closed.close()


def test_the_users_own_certificates_stay_trusted(intercept: Interception, tmp_path: Path) -> None:
    private = Private(tmp_path)
    given = intercept.variables(Trust((private.file,)), {"AWS_CA_BUNDLE": private.file, "PIP_CERT": ""})
    assert {*given} == {
        "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE",
    }  # fmt: skip
    (bundle,) = {*given.values()}
    assert private.pem in Path(bundle).read_text()
    assert intercept.variables(Trust((private.file,)), {})["SSL_CERT_FILE"] == bundle
    assert intercept.variables(Trust(), {})["SSL_CERT_FILE"] != bundle


def test_no_key_is_left_on_disk_and_nothing_after_it_was_closed() -> None:
    it = interception()
    assert it is not None
    it.context("api.test")
    folder = Path(it.variables(Trust(), {})["SSL_CERT_FILE"]).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not any("PRIVATE KEY" in file.read_text() for file in folder.iterdir())
    it.close()
    assert not folder.exists()


def test_without_the_extra_there_is_none() -> None:
    code = (
        "import sys\nsys.modules['trustme'] = None\n"
        "from flakestorm.boundary.intercept import interception\nprint(interception())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"
