"""Reading a pattern: its alternatives, and what each is made of; and how often texts have a word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

__all__ = ["FLAGS", "Branch", "Token", "anchor", "anchors", "branches", "commonness", "foreign", "read", "starts", "strange"]

FLAGS = re.compile(r"\(\?[imsx]+\)")
_ATOM = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\x\{[0-9A-Fa-f]+\}|\\x[0-9A-Fa-f]{2}|\\.|[^(]", re.DOTALL)
_GROUP = re.compile(r"\((?:\?[ims]*:)?")
_TIMES = re.compile(r"[*+?]\??|\{(\d+)(,?)(\d*)\}\??")
_LOOSE = re.compile(r"\\[Wsnt]|\[(?:\\[snt]| )+\]")
_SEPARATOR = re.compile(r"\\[Wsnt]|\\?[\x00-/:-@\[\]-^`{-\x7f]|\[(?!\^)(?:\\[sWnt]|\\?[\x00-/:-@\[\]-^`{-\x7f])+\]")
_WIDE = re.compile(r"\.|\\[wSD]|\[\^.*\]|\[.*(?:\\[wSD]|[a-zA-Z]-[a-zA-Z]).*\]", re.DOTALL)
_WORDLY = re.compile(r"[a-zA-Z0-9_]|\\d|\[(?:[a-zA-Z0-9]-[a-zA-Z0-9]|[a-zA-Z0-9_]|\\d)+\]")
_STRANGE = re.compile(r"\[?[^\x00-\x7f](?:-?[^\x00-\x7f])*\]?|\\x\{[0-9A-Fa-f]{3,}\}")
_ASSERTIONS = ("^", "$", "\\b", "\\B")
_NO_END = 1 << 16

# How often a text has what a pattern asks for, roughly.
_PER_CHARACTER = 0.3
_PER_DIGIT = 0.6
_PER_MARK = dict.fromkeys(":/.,-", 0.9) | {"!": 0.05, "|": 0.1}
_FOREIGN = 0.02  # a character that is not ASCII
_LEAST = 1e-5  # no word is rarer
_EVERYWHERE = "a the to in as of and is it for you on with that this be are i s t or by not http https com".split()
_PER_COMMON_WORD = 0.05
_COMMON_WORDS = """
    your from will have what was were has can all any its an at we they them their do does if so no my me our his her
    who when how more one about which out been but only just also must should would could please request user users
    info information data give given first need needs provide provided say show tell know use used using new other
    others make made like there here some into than then these those each every over up way day today now name account
    code following follow read where same before after own place list send test version two time type get go see set
    want think call called run start end message system output response reply help text string file add change check
    including include without don doesn cannot fix id page work
"""
_PER_FREQUENT_WORD = 0.01
_FREQUENT_WORDS = """
    url link image function tool api command install open write writing responses chat world llm never running avoid
    part email assistant reason reasons model agent prompt answer input token tokens key keys request requests question
    ai gpt openai server client error default value values current content document word words line number numbers
    real free full second different standard true false print return option options support example examples project
    public private policy rules rule access address database service process export import local remote source
    transfer travel security secret password long short high low person people man woman life world year years month
    week good great best better much many most such even still while until because between through during again however
    may might shall let take put find ask asked look provide require required step steps result results state simple
    build feature features package format language history job role form include included includes well back down
    right left next last home team company business customer order service price point line control instructions
    instruction messages anything everything something nothing continue create details setting settings mode session
    unfortunately times conversation human note using hi hello dear thank thanks regards receive received share
    email mail date write written code message answers versions numbers keep important possible available able
"""
_COMMON = dict.fromkeys(_FREQUENT_WORDS.split(), _PER_FREQUENT_WORD) | dict.fromkeys(
    _COMMON_WORDS.split(), _PER_COMMON_WORD
)


@dataclass(frozen=True)
class Token:
    """A character, class, assertion or group, and how often it stands there."""

    atom: str
    times: str
    least: int
    most: int
    branches: tuple[tuple[Token, ...], ...] = ()

    def __str__(self) -> str:
        return (_either(map(_text, self.branches)) if self.branches else self.atom) + self.times

    @cached_property
    def gap(self) -> bool:
        """Whether it stands for words that nobody knows."""
        if self.branches:
            return any(token.gap for branch in self.branches for token in branch)
        return self.most > 1 and bool(_WIDE.fullmatch(self.atom)) and not self.separates

    @cached_property
    def separates(self) -> bool:
        """Whether no word has it in it."""
        return self.atom not in _ASSERTIONS and bool(_SEPARATOR.fullmatch(self.atom))

    @cached_property
    def loose(self) -> bool:
        """Whether it is just any separator."""
        return bool(_LOOSE.fullmatch(self.atom))

    @cached_property
    def commonness(self) -> float:
        """How often texts have it, 0 to 1."""
        if not self.least or self.atom in _ASSERTIONS or _WIDE.fullmatch(self.atom) or self.loose:
            return 1.0
        if self.branches:
            return min(1.0, sum(map(_commonness, self.branches))) ** self.least
        if self.atom.isdigit():
            return _PER_DIGIT
        if self.atom[-1] in _PER_MARK:
            return _PER_MARK[self.atom[-1]] ** self.least
        return (_FOREIGN if _STRANGE.fullmatch(self.atom) else _PER_CHARACTER) ** self.least


Branch = tuple[Token, ...]
_Anchor = tuple[float, str]
_NOTHING: _Anchor = (1.0, "")


def anchors(pattern: str) -> list[str]:
    """Patterns without gaps, one of which occurs within every match of a pattern; none where none is known.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
    """
    found = list(map(anchor, branches(pattern)))
    return found if all(found) else []


def branches(pattern: str) -> tuple[Branch, ...]:
    """The alternatives of a pattern.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
    """
    found, _ = read(FLAGS.sub("", pattern), 0)
    while len(found) == 1 and (inner := _whole(found[0])):
        found = inner
    return found


def anchor(branch: Branch) -> str:
    """A pattern without gaps that occurs within every match of an alternative; empty where none is known."""
    return _rarest(branch, begins=False)[1]


def foreign(pattern: str) -> bool:
    """Whether a pattern matches nothing that is all ASCII.

    Args:
        pattern: in the syntax that RE2 and Python's `re` share.
    """
    return all(map(strange, branches(pattern)))


def strange(run: Branch) -> bool:
    """Whether an alternative matches nothing that is all ASCII."""
    return any(
        token.least and (all(map(strange, token.branches)) if token.branches else _STRANGE.fullmatch(token.atom))
        for token in run
    )


def read(pattern: str, at: int) -> tuple[tuple[Branch, ...], int]:
    """What stands from a place to the end of its group, and where that is."""
    found: list[list[Token]] = [[]]
    while at < len(pattern) and pattern[at] != ")":
        if pattern[at] == "|":
            found.append([])
            at += 1
            continue
        inner: tuple[Branch, ...] = ()
        if group := _GROUP.match(pattern, at):
            inner, at = read(pattern, group.end())
            atom, at = "", at + 1
        else:
            match = _ATOM.match(pattern, at)
            atom = match[0] if match else pattern[at]
            at += len(atom)
        times = _TIMES.match(pattern, at)
        found[-1].append(Token(atom, times[0] if times else "", *_count(times), inner))
        at = times.end() if times else at
    return tuple(map(tuple, found)), at


def _count(times: re.Match[str] | None) -> tuple[int, int]:
    """How often something stands there, at least and at most."""
    if times is None:
        return 1, 1
    if times[1] is None:
        return int(times[0][0] == "+"), 1 if times[0][0] == "?" else _NO_END
    return int(times[1]), int(times[3]) if times[3] else _NO_END if times[2] else int(times[1])


def _whole(branch: Branch) -> tuple[Branch, ...]:
    """The alternatives of a branch that is one group, behind a `\\b` perhaps; each then has the `\\b`."""
    before, last = branch[:-1], branch[-1]
    if last.branches and not last.times and all(token.atom == "\\b" for token in before):
        return tuple((*before, *inner) for inner in last.branches)
    return ()


def _rarest(branch: Branch, *, begins: bool) -> _Anchor:
    """The part of a branch that texts have least often.

    Args:
        begins: whether the branch begins where a word begins.
    """
    found: list[_Anchor] = []
    run: list[Token] = []
    at_run = begins
    for place, token in enumerate(branch):
        if not token.gap:
            run.append(token)
            continue
        found.append(_part(run, begins=at_run))
        if token.branches and token.least:  # one of the alternatives is there, and right behind the run
            inner = [_rarest((*run, *inside), begins=at_run) for inside in token.branches]
            if all(text for _, text in inner):
                found.append((min(1.0, sum(share for share, _ in inner)), _either(text for _, text in inner)))
        ends = _ends(branch[: place + 1])
        run, at_run = [], begins if ends is None else ends
    return min([*found, _part(run, begins=at_run)])


def _part(run: list[Token], *, begins: bool) -> _Anchor:
    """A run without the separators around it, if it says anything."""
    while run and run[0].loose and run[0].least:
        run, begins = run[1:], True
    while run and run[-1].loose:
        run = run[:-1]
    share = _commonness(run)
    return (share, ("\\b" if begins and starts(run) else "") + _text(run)) if share < _PER_CHARACTER else _NOTHING


def _text(run: Iterable[Token]) -> str:
    return "".join(map(str, run))


def _either(texts: Iterable[str]) -> str:
    return f"(?:{'|'.join(texts)})"


def _commonness(run: Iterable[Token]) -> float:
    """How often texts have what a run stands for, roughly: the product over its words."""
    share, word = 1.0, ""
    for token in [*run, None]:
        if token and not token.times and len(token.atom) == 1 and token.atom.isalnum() and token.atom.isascii():
            word += token.atom.lower()
            continue
        if word:
            share *= commonness(word)
            word = ""
        share *= token.commonness if token else 1.0
    return share


def commonness(word: str) -> float:
    """How often texts have a word, roughly, 0 to 1."""
    if word in _EVERYWHERE:
        return _PER_CHARACTER
    return max(_COMMON.get(word, _LEAST), _PER_CHARACTER ** len(word))


def starts(run: Iterable[Token]) -> bool:
    """Whether it can only start with a letter or digit; of a run in reverse order, end."""
    for token in run:
        if token.branches:
            word = all(starts(branch) and starts(branch[::-1]) for branch in token.branches)
        else:
            word = bool(_WORDLY.fullmatch(token.atom))
        if not word or token.least:
            return word
    return False


def _ends(run: Branch) -> bool | None:
    """Whether a word can begin behind it only; None where it may stand for nothing and else is so."""
    for token in reversed(run):
        if token.branches:
            inner = [_ends(branch) for branch in token.branches]
            separator = False not in inner
            sure = None not in inner
        else:
            separator, sure = token.separates or token.atom in ("\\b", "^"), True
        if not separator:
            return False
        if sure and token.least:
            return True
    return None
