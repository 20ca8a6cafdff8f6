from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from flakestorm.boundary.trust import VARIABLES, Trust, trust_of
from tls_support import Private


@pytest.fixture
def private(tmp_path: Path) -> Private:
    return Private(tmp_path)


def accepted(trust: Trust, private: Private) -> bool:
    context = trust.context()
    return context is not None and private.pem in {
        ssl.DER_cert_to_PEM_cert(der) for der in context.get_ca_certs(binary_form=True)
    }


@pytest.mark.parametrize("variable", [name for name in VARIABLES if name != "SSL_CERT_DIR"])
def test_each_variable_that_names_a_file_counts(private: Private, variable: str) -> None:
    assert accepted(trust_of({variable: private.file}, {}), private)
    assert accepted(trust_of({}, {variable: private.file}), private)


def test_folders_count_and_there_may_be_several(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    authorities = [Private(one), Private(two)]
    (one / "README").write_text("not a certificate")
    for trust in (
        trust_of({"SSL_CERT_DIR": f"{one}{os.pathsep}{two}"}, {}),
        trust_of({"REQUESTS_CA_BUNDLE": str(one), "SSL_CERT_DIR": str(two)}, {}),
    ):
        assert all(accepted(trust, authority) for authority in authorities)
        assert trust.unreadable == ()


def test_the_agents_own_word_stands_over_the_callers(tmp_path: Path, private: Private) -> None:
    trust = trust_of({"SSL_CERT_FILE": ""}, {"SSL_CERT_FILE": private.file})
    assert trust == Trust()
    assert trust.context() is None


def test_what_the_system_has_anyway_costs_nothing(monkeypatch: pytest.MonkeyPatch, private: Private) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", private.file)
    assert trust_of({}, {"SSL_CERT_FILE": private.file, "CURL_CA_BUNDLE": private.file}).context() is None


def test_the_systems_own_stay_accepted(private: Private) -> None:
    system = set(ssl.create_default_context().get_ca_certs(binary_form=True))
    context = trust_of({"SSL_CERT_FILE": private.file}, {}).context()
    assert context is not None
    assert system < {*context.get_ca_certs(binary_form=True)} or not system
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_one_text_holds_every_certificate_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, own = Private(tmp_path), Private(tmp_path / "..")
    monkeypatch.setenv("SSL_CERT_FILE", system.file)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    both = tmp_path / "both.pem"
    both.write_text(f"# a remark\n{system.pem}{own.pem}")
    text = trust_of({"REQUESTS_CA_BUNDLE": str(both), "NODE_EXTRA_CA_CERTS": own.file}, {}).pem().decode()
    assert text == system.pem + own.pem


def test_what_holds_no_certificate_is_known_and_vouches_for_nobody(tmp_path: Path, private: Private) -> None:
    (tmp_path / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n")
    (tmp_path / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    places = [str(tmp_path / name) for name in ("missing.pem", "key.pem", "broken.pem")]
    trust = Trust((*places, private.file))
    assert trust.unreadable == tuple(places[:2])
    assert accepted(trust, private)
