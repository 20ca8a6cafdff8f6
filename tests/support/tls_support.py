"""A private certificate authority, and upstreams with certificates of its making."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

__all__ = ["Private"]


class Private:
    """A certificate authority that nobody knows.

    Args:
        folder: where its certificate is written.

    `file` is the path of its certificate, `pem` what is in there.
    """

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.file = str((folder / f"private-ca-{id(self)}.pem").resolve())
        self.pem = self.authority.cert_pem.bytes().decode()
        Path(self.file).write_text(self.pem)

    def server(self, *names: str) -> ssl.SSLContext:
        """The settings of a server that is called so; by default it is on loopback."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(context)
        return context

    def client(self) -> ssl.SSLContext:
        """The settings of a client that trusts this authority and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.file)
        return context
