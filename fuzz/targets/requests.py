"""Requests in every protocol: what is asked, what tools told, and what is put in, with every other byte as it was."""

from __future__ import annotations

from flakestorm.core.call import Call
from flakestorm.core.site import Sites
from flakestorm.wire.classify import classify
from flakestorm.wire.context import Addition, added, conversation
from flakestorm.wire.conversation import DIALECTS, rewrite, tool_results
from flakestorm.wire.protocols import PROTOCOLS, candidates
from flakestorm.wire.results import Told
from fuzz.material import Bytes, jsonlike
from fuzz.targets.wires import WORDS

__all__ = ["check"]

_PATHS = tuple(
    f"https://api.example{mark if mark[0] == '/' else f'/v1/m{mark}'}" for p in PROTOCOLS for mark in p.marks
)
_DIALECTS = tuple(DIALECTS)
_TYPES = ("application/json", "text/plain", "multipart/form-data; boundary=x", "")


def check(data: bytes) -> None:
    source = Bytes(data)
    url, media = _PATHS[source.below(len(_PATHS))], _TYPES[source.below(len(_TYPES))]
    dialect, strategy = _DIALECTS[source.below(len(_DIALECTS))], ("append", "prepend", "replace")[source.below(3)]
    body = jsonlike(source, WORDS)
    call = Call("POST", url, (("content-type", media),), body)
    for wire in candidates(call):
        wire.recognises(call)
        wire.model_of(call)
    classify(tools=(), sites=Sites())(call)
    results = tool_results(dialect, body)
    told = Told("another\r\nresult", True) if source.below(2) else Told("", False)
    if results:
        changed = rewrite(dialect, body, [(result, told) for result in results])
        assert len(tool_results(dialect, changed)) == len(results)
    talk = conversation(dialect, body)
    if talk is not None:
        keys = [message.key for message in talk.messages]
        additions = [Addition("more", key, strategy) for key in (None, *keys[:3])]  # type: ignore[arg-type]
        again = conversation(dialect, added(dialect, body, additions))
        assert again is not None
