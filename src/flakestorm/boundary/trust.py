"""Whose certificates are accepted from upstreams: those that the agent's own client would accept.

Which client an agent uses cannot be known from here, so every documented way of naming certificate authorities counts:
the system's own, and each file and folder that one of `VARIABLES` names. A certificate that none of them vouches for is
refused, always.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from flakestorm.core.record import Record

__all__ = ["VARIABLES", "Trust", "trust_of"]

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Variables that name certificate authorities: OpenSSL's (read by Python, curl, Go, Ruby, Rust), requests', curl's and
Node's."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Trust(Record, frozen=True):
    """The certificate authorities that are accepted beside the system's own.

    Args:
        places: files of certificates (PEM), and folders of such files.
    """

    places: tuple[str, ...] = ()

    def context(self) -> ssl.SSLContext | None:
        """The settings for a TLS client; None where the system's own are enough."""
        return _context(self) if self.places else None

    def pem(self) -> bytes:
        """Every accepted authority's certificate, in one PEM text, each once."""
        system = ssl.get_default_verify_paths()
        files = [Path(found) for found in (system.cafile or system.capath, *self.places) if found]
        found = dict.fromkeys(
            certificate for file in files for text in _texts(file) for certificate in _CERTIFICATE.findall(text)
        )
        return b"".join(certificate + b"\n" for certificate in found)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The places that hold no certificate, because they are not there, cannot be read, or hold something else."""
        return tuple(place for place in self.places if not any(map(_CERTIFICATE.search, _texts(Path(place)))))


def trust_of(env: Mapping[str, str], caller: Mapping[str, str]) -> Trust:
    """Whom an agent trusts.

    Args:
        env: the agent's own environment.
        caller: the caller's, for what the agent's does not say.
    """
    system = ssl.get_default_verify_paths()  # reads the environment of this process
    known = {str(Path(path).resolve()) for path in (system.cafile, system.capath) if path}
    named = [env.get(name, caller.get(name, "")) for name in VARIABLES]
    named[1:2] = named[1].split(os.pathsep)  # the only one that may name several
    places = (str(Path(path).resolve()) for path in named if path.strip())
    return Trust(tuple(dict.fromkeys(place for place in places if place not in known)))


@lru_cache(8)
def _context(trust: Trust) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    for place in trust.places:
        for text in _texts(Path(place)):
            for certificate in _CERTIFICATE.findall(text):
                with suppress(ssl.SSLError):  # one that cannot be parsed vouches for nobody
                    context.load_verify_locations(cadata=certificate.decode("ascii", "ignore") + "\n")
    return context


def _texts(place: Path) -> Iterator[bytes]:
    """What the file holds, or each file in the folder; nothing where that cannot be read."""
    with suppress(OSError):
        for file in sorted(place.iterdir()) if place.is_dir() else [place]:
            with suppress(OSError):
                yield file.read_bytes()
