"""More for the model to read: text added to a model request, in any dialect, where the user, a tool or the developer
speaks.

An agent sends the whole conversation again with every request, so what was added once must be added again, in the same
place, or the conversation would change its past. A place is therefore known by the message that stands there
(`Message.key`), not by its number. What the model said itself stays as it is, to the byte, and so does everything else
that is not the addressed text: providers sign some of it and cache all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from flakestorm.wire.dialects import Dialect, Role, dialect_of
from flakestorm.wire.shape import Doc, dump, items, obj, parse, string
from flakestorm.wire.splice import Edit, Path, elements, span, spliced, with_members

__all__ = ["Addition", "Conversation", "Key", "Message", "Strategy", "added", "conversation"]

Key = tuple[str, str, int]
"""What a message is known by in every request of a run: who speaks, a digest of the words, and which one of equals."""

Strategy = Literal["prepend", "append", "replace"]
"""How text joins what is there: in front of it, behind it, or in its place."""

_BETWEEN = "\n\n"
_MARKS = ("type", "role", "cache_control")  # members that say how something is sent, and change from request to request


@dataclass(frozen=True, slots=True)
class Message:
    """One message that is not the model's own.

    Args:
        role: `user`, or `tool` for the results of tools.
        key: equal for the same message in every request of a run, also where its cache marks have moved.
        text: what the user says in it; of tools, see `results`.
        index: its number in the request's list of messages; -1 for a message that is the whole of it, as a string.
    """

    role: Role
    key: Key
    text: str = field(compare=False)
    index: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request tells the model.

    Args:
        messages: those of the user and of tools, in order.
        system: the system prompt; empty where there is none.
        resumed: whether the provider keeps what was said before, so that only what is new is here.
    """

    messages: tuple[Message, ...] = ()
    system: str = ""
    resumed: bool = False

    @property
    def newest(self) -> Message | None:
        """What the model is to answer: the last message of the user or of tools."""
        return self.messages[-1] if self.messages else None

    @property
    def marks(self) -> frozenset[Key]:
        """What later requests of the same conversation share with this one, at least one of them: the user's first
        message, and the system prompt."""
        first = next((message.key for message in self.messages if message.role == "user"), None)
        system = [("system", _digest((self.system,)), 0)] if self.system else []
        return frozenset([*([] if first is None else [first]), *system])


@dataclass(frozen=True, slots=True)
class Addition:
    """Text for the model to read.

    Args:
        text: what is added.
        at: the message it is added to; None for the system prompt, which is made where there is none. Results of tools
            are left alone: the text then stands behind them, as a message of the user.
        strategy: how it joins what is there.
    """

    text: str
    at: Key | None = None
    strategy: Strategy = "append"


def conversation(wire: str, body: bytes) -> Conversation | None:
    """What a model request tells the model.

    Args:
        wire: what `Call.wire` says.
        body: the request body.

    Returns:
        None for a request that cannot be read, or cannot be added to.
    """
    doc = parse(body)
    dialect = None if doc is None else dialect_of(wire, doc)
    if doc is None or dialect is None:
        return None
    resumed = wire == "openai_responses" and bool(doc.get("previous_response_id") or doc.get("conversation"))
    return Conversation(tuple(_messages(dialect, doc)), _system(dialect, doc), resumed)


def added(wire: str, body: bytes, additions: Sequence[Addition]) -> bytes:
    """The request with these additions; every byte that is not at their places is as it was.

    Those at one place join it in the order given. An addition to a message that this request does not hold is left out.

    Args:
        wire: what `Call.wire` says.
        body: a body that `conversation` can read.
        additions: what to add.
    """
    doc = parse(body)
    dialect = None if doc is None else dialect_of(wire, doc)
    if doc is None or dialect is None or not additions:
        return body
    standing = {message.key: message for message in _messages(dialect, doc)}
    edits: list[Edit] = []
    for key in dict.fromkeys(addition.at for addition in additions if addition.at is not None):
        if message := standing.get(key):
            edits += _to_message(dialect, body, doc, message, [new for new in additions if new.at == key])
    system = [new for new in additions if new.at is None]
    edits += _to_system_message(dialect, body, doc, system) if not dialect.system and system else []
    body = spliced(body, edits)
    return _with_system_member(dialect, body, doc, system) if dialect.system and system else body


def _messages(dialect: Dialect, doc: Doc) -> Iterator[Message]:
    standing = doc.get(dialect.messages)
    seen: Counter[tuple[str, str]] = Counter()
    if isinstance(standing, str):
        yield Message("user", ("user", _digest((standing,)), 1), standing, -1)
    for index, message in enumerate([standing] if isinstance(standing, dict) else items(standing)):
        content = obj(message).get(dialect.content)
        role = dialect.role(message) if isinstance(message, dict) else ""
        if role == "tool" or (role == "user" and isinstance(content, str | list)):
            identity = role, _digest(_words(message))
            seen[identity] += 1
            yield Message(role, (*identity, seen[identity]), _text(dialect, content), index)


def _system(dialect: Dialect, doc: Doc) -> str:
    if not dialect.system:
        first = _system_message(dialect, doc)
        return "" if first is None else _text(dialect, doc[dialect.messages][first].get(dialect.content))
    prompt = doc.get(dialect.system)
    return _text(dialect, obj(prompt).get(dialect.system_parts) if dialect.system_parts else prompt)


def _system_message(dialect: Dialect, doc: Doc) -> int | None:
    """The number of the first message of the developer."""
    for index, message in enumerate(items(doc.get(dialect.messages))):
        if isinstance(message, dict) and dialect.role(message) == "system":
            return index
    return None


def _to_message(dialect: Dialect, body: bytes, doc: Doc, message: Message, new: Sequence[Addition]) -> list[Edit]:
    listed = isinstance(doc[dialect.messages], list)
    path: Path = (dialect.messages, message.index) if listed else (dialect.messages,)
    if message.role == "tool":
        end = span(body, path)[1]
        said = [dump(_spoken(dialect, "user", addition.text)) for addition in new]
        return [(end, end, b"".join(b"," + one for one in said))] if listed else []
    holder: Any = doc[dialect.messages][message.index] if listed else doc[dialect.messages]
    if isinstance(holder, str):
        return _to_content(dialect, body, path, holder, new)
    return _to_content(dialect, body, (*path, dialect.content), holder.get(dialect.content), new)


def _to_system_message(dialect: Dialect, body: bytes, doc: Doc, new: Sequence[Addition]) -> list[Edit]:
    index = _system_message(dialect, doc)
    if index is not None:
        content = doc[dialect.messages][index].get(dialect.content)
        if isinstance(content, str | list):
            return _to_content(dialect, body, (dialect.messages, index, dialect.content), content, new)
    standing = elements(body, (dialect.messages,)) if isinstance(doc.get(dialect.messages), list) else []
    if not standing:
        return []
    said = dump(_spoken(dialect, "system", _joined("", new)))
    return [(standing[0][0], standing[0][0], said + b",")]


def _with_system_member(dialect: Dialect, body: bytes, doc: Doc, new: Sequence[Addition]) -> bytes:
    prompt, parts = doc.get(dialect.system), dialect.system_parts
    content = obj(prompt).get(parts) if parts else prompt
    if isinstance(content, list) or (content and isinstance(content, str)):
        path: Path = (dialect.system, parts) if parts else (dialect.system,)
        return spliced(body, _to_content(dialect, body, path, content, new))
    text = _joined("", new)
    made = {parts: [{**dialect.part, "text": text}]} if parts else text
    return with_members(body, {(): {dialect.system: made}})


def _to_content(dialect: Dialect, body: bytes, path: Path, content: object, new: Sequence[Addition]) -> list[Edit]:
    start, end = span(body, path)
    if isinstance(content, str):
        return [(start, end, dump(_joined(content, new)))]
    last = max((at for at, one in enumerate(new) if one.strategy == "replace"), default=-1)
    standing = [body[a:b] for a, b in elements(body, path)]
    kept = [raw for raw, part in zip(standing, items(content), strict=True) if last < 0 or not dialect.is_text(part)]
    parts = [dump({**dialect.part, "text": new[last].text}), *kept] if last >= 0 else kept
    front = [one for one in new[last + 1 :] if one.strategy == "prepend"]
    behind = [one for one in new[last + 1 :] if one.strategy == "append"]
    before, after = (
        b",".join(dump({**dialect.part, "text": one.text}) for one in some) for some in (reversed(front), behind)
    )
    if last < 0 and standing:  # the white space between the parts stays, too
        inside = elements(body, path)
        opening, closing = inside[0][0], inside[-1][1]
        put_before = [(opening, opening, before + b",")] if before else []
        return put_before + ([(closing, closing, b"," + after)] if after else [])
    return [(start, end, b"[" + b",".join(filter(None, (before, *parts, after))) + b"]")]


def _joined(text: str, new: Iterable[Addition]) -> str:
    for one in new:
        if one.strategy == "replace" or not text:
            text = one.text
        else:
            text = _BETWEEN.join((one.text, text) if one.strategy == "prepend" else (text, one.text))
    return text


def _spoken(dialect: Dialect, role: str, text: str) -> Doc:
    content: object = text if dialect.content == "content" else [{**dialect.part, "text": text}]
    return {"role": role, dialect.content: content}


def _text(dialect: Dialect, content: object) -> str:
    if isinstance(content, list):
        return _BETWEEN.join(part["text"] for part in content if dialect.is_text(part))
    return string(content)


def _words(value: object) -> Iterator[str]:
    """Every string in a message but its marks, so that a text is the same as a string and as a part of a list."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _MARKS:
                yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)


def _digest(words: Iterable[str]) -> str:
    state = blake2b(digest_size=16)
    for word in words:
        data = word.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()
