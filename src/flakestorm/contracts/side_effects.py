"""Invariants on what the agent's calls did to the world, beyond what they said.

A call has a side effect when its request reached the tool and was not refused there. Faults are laid between agent and
tool, so the tape knows both: a call that `error` answered never reached the tool, one whose reply
`timeout_after_commit` lost did, and one that `duplicate` hit did so twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView, built_in
from flakestorm.contracts.calls import ToolCall, calls_of, sites, tools_seen, unseen
from flakestorm.contracts.evidence import plain
from flakestorm.contracts.failures import result_failed
from flakestorm.core.call import Headers, header
from flakestorm.core.verdict import Verdict, failed, inconclusive, passed
from flakestorm.tape.model import Exchange
from flakestorm.wire.encoding import decode_body
from flakestorm.wire.mcp.protocol import Mcp

__all__ = ["no_duplicate_side_effect"]

_WORDS = ("idempoten", "clienttoken", "clientrequesttoken", "paypalrequestid")
"""What the names of idempotency keys are made of, without their case and separators."""

_DEPTH = 6


@built_in("no_duplicate_side_effect", "forbids", needs=("tool",), evidence="tape")
def no_duplicate_side_effect(spec: Invariant, run: RunView) -> Verdict:
    """The tool (a name or a glob) did nothing twice: no two calls that reached it were for the same thing, unless an
    idempotency key told it so.

    `key` says what the same thing is: a dotted path into the arguments (`order_id`, `payment.reference`) or the name of
    a header. Without it, or where it names the idempotency key itself, calls with the same arguments are for the same
    thing. A call's idempotency key is what `key` names, else a header or an argument called so (`Idempotency-Key`,
    `idempotency_key`, `client_token`). Two calls for the same thing are one side effect if they carry the same
    idempotency key, and two if either has none or they differ: a fresh key for each attempt protects nothing.

    What counts is what the tool was told, not what the agent heard. A call that never reached it (sent 0 times) is no
    side effect, nor is one that it refused: an HTTP status from 400 to 499, an MCP error, a function that raised, a
    result inside the agent that is an error in its own words. A 5xx leaves open what happened, so it counts. A request
    that `duplicate` delivered twice counts twice if it carries no idempotency key: networks do that, and the key is how
    an agent makes it harmless.

    A tool inside the agent is known from the model's conversation only. Two calls for the same thing were two side
    effects if it gave them different answers; where the answers are the same, it may have known the second for a copy,
    and the rule is inconclusive.
    """
    tool = spec.tool or ""
    calls = [_deed(call) for call in calls_of(tool, run)]
    real = [deed for deed in calls if deed.effects]
    same: dict[str, list[_Deed]] = defaultdict(list)
    nameless = 0
    for deed in real:
        if deed.effects > 1 and _token(spec.key, deed) is None:
            return failed(
                f"{deed.call.site} was delivered {deed.effects} times and carried no idempotency key, so "
                f"{deed.call.tool} could not know the copy for one"
            )
        thing = _thing(spec.key, deed)
        nameless += thing is None
        if thing is not None:
            same[f"{deed.call.tool} {thing}"].append(deed)
    twice = [(group, reason) for group in same.values() if (reason := _twice(spec, group))]
    for group, reason in twice:
        if not _alike(group):
            return failed(reason)
    if twice:
        return inconclusive(
            f"{twice[0][1]}; inside the agent nobody sees what it did to the world, and the answers are the same; "
            "register it in agent.tools"
        )
    if blind := unseen(tool, run):
        return inconclusive(blind)
    if nameless and len(real) > 1:
        lack = "do not say what they were for" if spec.key is None else f"have no {spec.key!r}"
        return inconclusive(
            f"{nameless} of {len(real)} calls that reached {tool} {lack}, so nobody knows whether they were for "
            f"the same thing: {sites([deed.call for deed in real])}"
        )
    if not calls:
        return passed(f"{tool} was not called; {tools_seen(run)}")
    reached = f"{len(real)} of {len(calls)} calls reached {tool} and were not refused"
    return passed(f"{reached}, each for a thing of its own" if len(real) > 1 else reached)


@dataclass(frozen=True, slots=True)
class _Deed:
    """A call, and how often it did something: how often the tool was told to and did not refuse."""

    call: ToolCall
    effects: int

    @property
    def headers(self) -> Headers:
        return () if self.call.exchange is None else self.call.exchange.headers


def _deed(call: ToolCall) -> _Deed:
    seam = call.exchange
    if seam is None:
        return _Deed(call, 0 if call.said is not None and result_failed(call.said) else 1)
    return _Deed(call, seam.sent - 1 if seam.sent and _refused(seam) else seam.sent)


def _alike(group: Sequence[_Deed]) -> bool:
    """Whether all of these ran inside the agent, and the tool answered them with the same words."""
    said = {None if deed.call.said is None else deed.call.said.text for deed in group}
    return all(deed.call.exchange is None for deed in group) and len(said) == 1


def _twice(spec: Invariant, group: Sequence[_Deed]) -> str | None:
    """Why these calls for the same thing are more than one side effect; None if they are one."""
    tokens = [_token(spec.key, deed) for deed in group]
    bare = tokens.count(None)
    if len(set(tokens)) == 1 and (not bare or len(group) == 1):
        return None
    what = "the same arguments" if spec.key is None or _is_idempotency(spec.key) else f"the same {spec.key}"
    thing = "" if what == "the same arguments" else f" ({plain(_thing(spec.key, group[0]) or '', 60)})"
    if not bare:
        why = "different idempotency keys"
    else:
        why = "no idempotency key" if bare == len(group) else f"no idempotency key in {bare} of them"
    where = sites([deed.call for deed in group])
    return f"{group[0].call.tool} was called {len(group)} times with {what}{thing} and {why}: {where}"


def _refused(call: Exchange) -> bool:
    """Whether the tool's (last) answer says that it did nothing."""
    said = call.reply if call.world is None else call.world
    if call.wire == Mcp.name:
        return Mcp().said(decode_body(said.body, said.headers), stream=said.stream).error is not None
    return 400 <= said.status < 500 or (call.method == "CALL" and said.status >= 500)


def _thing(key: str | None, deed: _Deed) -> str | None:
    """What the call was for, as text that is equal for the same thing; None where the call does not say."""
    if key is not None and not _is_idempotency(key):
        found = _named(key, deed)
        return None if found is None else _text(found)
    given = next(iter(deed.call.arguments), None)
    if given is None:
        seam = deed.call.exchange
        return None if seam is None else f"{seam.method} {seam.url} {seam.body!r}"
    return _text({name: value for name, value in given.items() if not _is_idempotency(name)})


def _token(key: str | None, deed: _Deed) -> str | None:
    """The call's idempotency key; None where it has none."""
    if key is not None and _is_idempotency(key):
        found = _named(key, deed)
        return None if found in (None, "") else _text(found)
    for name, value in deed.headers:
        if _is_idempotency(name) and value:
            return value
    for given in deed.call.arguments:
        for value in _idempotency_keys(given, 0):
            return value
    return None


def _named(key: str, deed: _Deed) -> Any:
    """What an argument path or a header name stands for in this call; None where it is not there."""
    for given in deed.call.arguments:
        value: Any = given
        for step in [key] if key in given else key.split("."):
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                value = None
        if value is not None:
            return value
    return header(deed.headers, key)


def _idempotency_keys(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEPTH or not isinstance(value, Mapping):
        return
    for name, inner in value.items():
        if _is_idempotency(str(name)) and isinstance(inner, (str, int)) and inner != "":
            yield str(inner)
        else:
            yield from _idempotency_keys(inner, depth + 1)


def _is_idempotency(name: str) -> bool:
    """Whether a header, an argument or a path to one is called as idempotency keys are."""
    bare = "".join(sign for sign in name.rpartition(".")[2].lower() if sign.isalnum())
    return any(word in bare for word in _WORDS)


def _text(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
