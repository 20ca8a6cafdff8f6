"""Interception of TLS: what lets the gateway read the https traffic that an agent sends through it as its proxy.

An agent with a hard-coded `https://` URL asks its proxy for a tunnel (CONNECT) and speaks TLS in it. With the extra
`mitm` the gateway speaks TLS back, with a certificate made for that host, and what the agent then sends is a request
like any other: one pipeline, one HTTP stack. Without the extra a tunnel stays closed; see `tunnel.py`.

The certificate authority behind those certificates exists for one flakestorm process. Its private key stays in memory
and is never written down; its certificate lies in a folder that only this user can open, and goes with the process. So
nobody has to trust it beyond the agents that are told to, and there is nothing to steal when they have ended.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from flakestorm.boundary.trust import VARIABLES, Trust
from flakestorm.core.choices import entropy_token

if TYPE_CHECKING:
    import trustme

__all__ = ["EXTRA", "Interception", "interception"]

EXTRA = "mitm"
"""The extra that brings interception."""

_ALSO = (
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
    "PIP_CERT",
)
"""Variables that take the place of the general ones for one program; led to the same file only where they are set."""

_HOSTS = 512  # how many certificates are kept


class Interception:
    """A certificate authority, and the certificates it has issued.

    Args:
        authority: issues the certificates.
    """

    def __init__(self, authority: trustme.CA) -> None:
        self._authority = authority
        self._folder = TemporaryDirectory(prefix="flakestorm-mitm-", ignore_cleanup_errors=True)  # mode 0700
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._bundles: dict[Trust, Path] = {}

    def variables(self, trust: Trust, env: Mapping[str, str]) -> dict[str, str]:
        """What makes an agent accept the certificates: variables that name one file, with this authority's certificate
        and every one the agent trusted before.

        Args:
            trust: whom it trusted before.
            env: its environment so far.
        """
        bundle = self._bundles.get(trust)
        if bundle is None:
            bundle = self._bundles[trust] = Path(self._folder.name, f"trusted-{len(self._bundles)}.pem")
            bundle.write_bytes(self._authority.cert_pem.bytes() + trust.pem())
        names = [name for name in VARIABLES if not name.endswith("_DIR")]
        return dict.fromkeys([*names, *(name for name in _ALSO if env.get(name))], str(bundle))

    def context(self, host: str) -> ssl.SSLContext:
        """The settings of a TLS server that passes for this host. Only HTTP/1.1 is offered.

        Args:
            host: a name or an address, without brackets.

        Raises:
            ValueError: no certificate can be made for such a name.
        """
        context = self._contexts.get(host)
        if context is None:
            if len(self._contexts) >= _HOSTS:
                self._contexts.clear()
            context = self._contexts[host] = self._issue(host)
        return context

    def authority(self) -> tuple[str, str]:
        """Its certificate and its private key, in PEM, for another process that takes this one's place."""
        return self._authority.cert_pem.bytes().decode(), self._authority.private_key_pem.bytes().decode()

    def close(self) -> None:
        """Remove the folder; nobody can be given a certificate any more."""
        self._contexts.clear()
        self._bundles.clear()
        self._folder.cleanup()

    def _issue(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        leaf = self._authority.issue_cert(host, organization_name="flakestorm", organization_unit_name="interception")
        # The ssl module takes keys from files only; this one is there for a moment, in a folder nobody else can open.
        with leaf.private_key_and_cert_chain_pem.tempfile(dir=self._folder.name) as path:
            context.load_cert_chain(path)
        return context


def interception(authority: Sequence[str] = ()) -> Interception | None:
    """A new authority, or the one given as `Interception.authority` gives it; None where the extra is not installed."""
    try:
        import trustme
    except ImportError:
        return None
    if authority:
        certificate, key = authority
        return Interception(trustme.CA.from_pem(certificate.encode(), key.encode()))
    name = f"interception {entropy_token(6)}"
    return Interception(trustme.CA(path_length=0, organization_name="flakestorm", organization_unit_name=name))
