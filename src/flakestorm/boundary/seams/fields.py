"""Header fields as in-process seams meet them: bytes in the library's hands, text everywhere else."""

from __future__ import annotations

from collections.abc import Iterable
from http.client import responses
from itertools import compress, count
from operator import ne

from flakestorm.core.call import Headers
from flakestorm.tape.redact import is_secret_header

__all__ = ["Fields", "phrase", "raw_headers", "text_headers"]


def phrase(status: int) -> str:
    """The usual reason phrase of a status; empty for one that nobody knows."""
    return responses.get(status, "")


class _Texts(dict[tuple[bytes, ...], tuple[str, str]]):
    """Header fields as text. Clients send the same ones over and over, so those that are short and harmless are kept
    for the next time, and all calls on a tape share them."""

    def __missing__(self, field: tuple[bytes, ...]) -> tuple[str, str]:
        text = field[0].decode("latin-1"), field[-1].decode("latin-1")
        if len(text[1]) <= 64 and not is_secret_header(text[0]):
            if len(self) >= 1024:
                self.clear()
            self[field] = text
        return text


_text = _Texts().__getitem__


def text_headers(raw: Iterable[tuple[bytes, ...]]) -> Headers:
    """Header fields as text; Latin-1, so that every byte survives the way there and back.

    Args:
        raw: fields whose first item is the name and whose last one is the value.
    """
    return tuple(map(_text, raw))


class Fields:
    """The header fields that came by one place last, and what was found out about them; often the next are the same.

    It holds what may be secret, so it is to be forgotten with the run.

    Args:
        name: in lower case; of a field whose place among the others somebody wants to know.
    """

    __slots__ = ("_known", "_name")

    def __init__(self, name: bytes = b"") -> None:
        self._name = name
        self._known: tuple[list[tuple[bytes, ...]], Headers, int] = [], (), -1

    def known(self, raw: list[tuple[bytes, ...]]) -> tuple[list[tuple[bytes, ...]], Headers, int]:
        """The fields, the same as text (of `text_headers`, and the very object as before where they are), and where the
        one field of the name stands: -1 where there is none, or more than one.

        Args:
            raw: fields whose last two items are the name in lower case and the value.
        """
        known = self._known
        last, texts, at = known
        if raw == last:
            return known
        if len(raw) == len(last):  # most often one field says another length than before
            now = list(texts)
            for place in compress(count(), map(ne, raw, last)):
                field = raw[place]
                if field[:-1] != last[place][:-1]:
                    break
                now[place] = texts[place][0], field[-1].decode("latin-1")
            else:
                known = self._known = raw.copy(), tuple(now), at
                return known
        names = [field[-2] for field in raw]
        at = names.index(self._name) if names.count(self._name) == 1 else -1
        known = self._known = raw.copy(), tuple(map(_text, raw)), at
        return known


def raw_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The inverse of `text_headers`; what Latin-1 cannot say is sent as UTF-8."""
    try:
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    except UnicodeEncodeError:
        return [(_raw(name), _raw(value)) for name, value in headers]


def _raw(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")
