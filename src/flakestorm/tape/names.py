"""What stands for what in a replay: the volatile tokens of the recording and those of this run, one for one.

As long as every token has stood for itself, what else does so changes nothing. So what was asked to the letter, and
what was replied, is only kept until the first token turns up that stands for another one, and read then; in most
replays that never happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flakestorm.tape.fingerprint import Asked
from flakestorm.tape.tokens import Token, scan_reply

__all__ = ["Names"]


class Names:
    """The names of one replay."""

    __slots__ = ("_later", "_new", "_old", "_plain", "_settled")

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}
        self._settled: set[int] = set()
        self._later: list[Asked | Sequence[bytes]] = []
        self._plain = True  # each that is known stands for itself

    def of(self, token: str) -> str:
        """What a recorded token is called in the replay; one that nobody has named is itself, for good."""
        name = self._new.get(token)
        if name is None:
            name = self._new[token] = token
            self._old.setdefault(token, token)
        return name

    def heard(self, text: str) -> list[tuple[int, int, str]]:
        """A recorded reply is to be served: what it brings stands for itself from now on.

        Returns:
            Begin, end and replacement of each token that stands for another one in this run.
        """
        changes: list[tuple[int, int, str]] = []
        for begin, end, token in scan_reply(text):
            name = self.of(token)
            if name != token:
                changes.append((begin, end, name))
        return changes

    def heard_later(self, chunks: Sequence[bytes]) -> bool:
        """As `heard`, of a body in pieces, where it is known unseen that there is nothing to be replaced."""
        if self._plain:
            self._later.append(chunks)
        return self._plain

    def asked_later(self, asked: Asked) -> bool:
        """As `fit` and `learn`, of a request that is the recorded one, where it is known unseen that it fits."""
        if self._plain:
            self._later.append(asked)
        return self._plain

    def fit(self, old: Asked, new: Asked) -> dict[str, str] | None:
        """The pairs by which one request is the other; None if they contradict what is known."""
        before: list[Token] = list(old.head)
        now: list[Token] = list(new.head)
        same: list[int] = []
        for (_, group), (_, other) in zip(old.parts, new.parts, strict=True):
            if group is other and (not group.tokens or id(group) in self._settled):
                continue
            if group is other:
                same.append(id(group))
            for one, two in zip(group, other, strict=True):
                if one is two and (not one.tokens or id(one) in self._settled):
                    continue
                before += one.tokens
                now += two.tokens
                if one is two:
                    same.append(id(one))
        pairs = self.agree(before, now)
        if pairs is not None:
            self._settled.update(same)
        return pairs

    def agree(self, before: list[Token], now: list[Token]) -> dict[str, str] | None:
        """The pairs by which one row of tokens is the other; None if they contradict what is known, or one another."""
        if len(before) != len(now):
            return None
        pairs: dict[str, str] = {}
        back: dict[str, str] = {}
        for one, two in zip(before, now, strict=True):
            if one.kind != two.kind:
                return None
            if one.kind == "rpc" or (one.is_time and (one.text == two.text or (one.now and two.now))):
                continue
            if self._later and one.text != two.text:
                self._catch_up()
            name = self._new.get(one.text) or pairs.get(one.text)
            if name is None:
                if (self._old.get(two.text) or back.get(two.text) or one.text) != one.text:
                    return None
                pairs[one.text] = two.text
                back[two.text] = one.text
            elif name != two.text:
                return None
        return pairs

    def learn(self, pairs: Mapping[str, str]) -> None:
        """From now on, these stand for one another."""
        if self._plain and any(old != new for old, new in pairs.items()):
            self._plain = False
        self._new.update(pairs)
        self._old.update((new, old) for old, new in pairs.items())

    def _catch_up(self) -> None:
        """A token stands for another one, or may not: now it matters which ones stand for themselves already."""
        later, self._later = self._later, []
        for each in later:
            if isinstance(each, Asked):
                self.learn(self.fit(each, each) or {})
            else:
                self.heard(b"".join(each).decode("utf-8", "surrogateescape"))
