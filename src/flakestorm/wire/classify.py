"""The outermost stage of every pipeline: what is this call, and what is its address?

A call to a model is known by its protocol, and so is one to an MCP server, which has the name of the tool it calls; a
tool that is a plain HTTP service is known by the URL glob it was given a name for, and anything else is called by its
host. From then on every stage speaks of kinds, names and sites, not of URLs.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from flakestorm.core.call import Call, header
from flakestorm.core.pipeline import Interceptor
from flakestorm.core.regex import later
from flakestorm.core.site import Kind, Sites
from flakestorm.wire.base import Wire
from flakestorm.wire.growing import LONG, Sketches
from flakestorm.wire.mcp.protocol import identify
from flakestorm.wire.protocols import candidates
from flakestorm.wire.shape import Sketch

__all__ = ["UNNAMED", "classify", "host_name", "is_loopback", "url_matches"]

UNNAMED = "unknown"
"""The name of what has none: a model request without a model, a URL without a host."""

_PLACES = 64  # addresses of which the last sketch is kept
_IPV6 = later(r"(^|//|@)\[([0-9A-Fa-f.*?]*:[0-9A-Fa-f:.*?]*)\]")  # a host, in a glob
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def classify(*, tools: Sequence[tuple[str, str]], sites: Sites) -> Interceptor:
    """The stage that fills `kind`, `name`, `wire` and `site` of every call and sends it inward.

    Calls that come with a kind other than `http` (functions wrapped in process, MCP, draws) keep it and their name.

    Args:
        tools: (tool name, URL glob) pairs; the first glob that matches names the tool. See `url_matches`.
        sites: the run's counter; held under a lock, because an agent's threads share it.
    """
    named = tuple((name, url_matches(glob)) for name, glob in tools)
    lock, sketches = threading.Lock(), Sketches()
    # Of an address: its last sketch, who asked in which way, and what that was known as; wires look at nothing else.
    models: dict[str, tuple[bytes, tuple[str, str | None], tuple[Kind, str, str]]] = {}

    def stage(call: Call) -> Call:
        asked, repeats, kind = call, None, call.kind
        if kind != "http":
            name, wire = call.name or UNNAMED, call.wire
        else:
            wires = candidates(call)
            told = None
            if wires and len(call.body) >= LONG:
                with lock:
                    sketch, repeats = sketches.of(call.lane, call.url, call.body)
                told, asks = models.get(call.url), (call.method, header(call.headers, "authorization"))
                if told is not None and (told[0] is not sketch or told[1] != asks):
                    told = None
                if told is None:
                    asked = Call(call.method, call.url, call.headers, sketch)
            kind, name, wire = _identify(call, asked, wires, named) if told is None else told[2]
            if kind == "llm" and told is None and type(asked.body) is Sketch:
                if len(models) >= _PLACES:
                    models.clear()
                models[call.url] = asked.body, asks, (kind, name, wire)
        with lock:
            site = sites.next(kind, name)
        return Call(
            call.method,
            call.url,
            call.headers,
            call.body,
            call.upload,
            kind,
            name,
            wire,
            call.lane,
            site,
            call.patience_s,
            repeats,
        )

    return stage


def _identify(
    call: Call, asked: Call, wires: Sequence[Wire], named: Sequence[tuple[str, Callable[[str], bool]]]
) -> tuple[Kind, str, str]:
    """What a call is; `asked` says which members its body has."""
    for wire in wires:
        if (model := wire.model_of(asked)) is not None:
            return "llm", model or UNNAMED, wire.name
    if (spoken := identify(call)) is not None:
        return "mcp", *spoken
    for name, matches in named:
        if matches(call.url):
            return "tool", name, ""
    return "http", host_name(call.url), ""


@lru_cache(maxsize=512)  # every run has the same few
def url_matches(glob: str) -> Callable[[str], bool]:
    """A test for URLs by a glob: `*`, `?` and `[...]` as in `fnmatch`, case-sensitive.

    The glob is held against the whole URL, and against the URL without its query. One without a scheme may begin
    anywhere after the scheme: `/search` is every URL whose path ends so, `api.test/*` everything on that host. The
    brackets of an IPv6 host are itself, and not a set of characters.
    """
    glob = _IPV6.sub(r"\1[[]\2]", glob)
    pattern = re.compile(fnmatch.translate(glob if "://" in glob else f"*://*{glob}"))

    def matches(url: str) -> bool:
        return pattern.match(url) is not None or pattern.match(url.partition("?")[0]) is not None

    return matches


def host_name(url: str) -> str:
    """What an unnamed HTTP service is called: its host, and its port where that tells it from its neighbours.

    The port is left out where it is the scheme's own, and on loopback, where ports differ from run to run and a name
    that holds one would match nothing the next time.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # not a URL that anybody can reach; the attempt is recorded all the same
        return UNNAMED
    if not host:
        return UNNAMED
    if port is None or port == _DEFAULT_PORTS.get(parts.scheme.lower()) or is_loopback(host):
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host, given without brackets, is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
