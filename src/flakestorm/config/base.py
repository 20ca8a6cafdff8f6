"""What every block of `flakestorm.yaml` has in common.

The classes that describe blocks have no postponed annotations: they are read when a block is, and a text would have to
be compiled for that.
"""

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, Union, get_args

from msgspec import Meta, Struct, convert
from msgspec.structs import FieldInfo, fields

from flakestorm.config.vocabulary import Vocabulary

__all__ = [
    "Count",
    "Key",
    "Milliseconds",
    "Placed",
    "Probability",
    "Severity",
    "Strict",
    "When",
    "keys_of",
    "members",
    "words",
]

Severity: TypeAlias = Literal["critical", "high", "medium", "low"]
When: TypeAlias = Literal[
    "always",
    "tool_faults_active",
    "llm_faults_active",
    "any_chaos_active",
    "no_chaos",
    "input_attack",
    "input_benign",
]
Probability: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
Milliseconds: TypeAlias = Annotated[int, Meta(ge=0)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


class Strict(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A block of the configuration: unknown keys are errors, and a key without a value has its default.

    YAML reads `tool_faults:` with nothing behind it as null. That is what is left when every entry below it is
    commented out, so it means the same as leaving the key out; a key that is required still needs a value.
    """

    KEYED: ClassVar[str] = ""
    """A list of such blocks may be a mapping instead, keyed by what this key says."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """The block that plain data describes. Numbers and booleans may be given as text.

        Raises:
            ValueError: the data does not fit; the message says what is wrong first.
        """
        return convert(_prepared(cls, data), cls, strict=False)

    @classmethod
    def _spelled(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The data with other spellings that mean the same put right."""
        return data

    def given(self) -> dict[str, Any]:
        """The settings that are not their defaults, by attribute."""
        found = {}
        for info in _fields(type(self)):
            value = getattr(self, info.name)
            if info.required or value != _default(info):
                found[info.name] = value
        return found


class Placed(Strict, frozen=True, kw_only=True, dict=True):
    """A block that knows where it was written, which is no part of what it says. It keeps that when it is pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        said = {name: getattr(self, name) for name in self.__struct_fields__}
        return _again, (type(self), said, dict(vars(self)))


def _again(block: type[Placed], said: Mapping[str, Any], place: Mapping[str, Any]) -> Placed:
    made = block(**said)
    vars(made).update(place)
    return made


class Key(NamedTuple):
    """One key of a block.

    Args:
        name: as it is written.
        kind: the type that its value must be of.
        required: whether it must be there.
        blocks: the kinds of block its value is, or, with `many`, is a list of; none where it is something else. Of
            several, the block's `type` says which.
        many: whether it is a list of blocks.
        about: what it is for.
    """

    name: str
    kind: Any
    required: bool
    blocks: tuple[type[Strict], ...] = ()
    many: bool = False
    about: str = ""

    def block(self, data: object) -> type[Strict] | None:
        """The kind of block this data is meant to be; None if there is no such kind."""
        if len(self.blocks) < 2:
            return self.blocks[0] if self.blocks else None
        kind = data.get("type") if isinstance(data, Mapping) else None
        return next((block for block in self.blocks if block.__struct_config__.tag == kind), None)


@cache
def _fields(block: type[Strict]) -> tuple[FieldInfo, ...]:
    """The fields of a block; msgspec reads the annotations anew each time it is asked."""
    return fields(block)


@cache
def keys_of(block: type[Strict]) -> dict[str, Key]:
    """The keys of a block as they are written, in order."""
    return {info.encode_name: _key(info) for info in _fields(block)}


def words(vocabulary: Vocabulary) -> dict[str, Any]:
    """JSON Schema of an open set of words: editors offer the built-in ones, and a plug-in's name is valid too."""
    return {"anyOf": [{"enum": sorted(vocabulary.words)}, {"type": "string"}]}


def _key(info: FieldInfo) -> Key:
    said = (each.description for each in getattr(info.type, "__metadata__", ()) if isinstance(each, Meta))
    key = Key(info.encode_name, info.type, info.required, about=next(filter(None, said), ""))
    for kind in members(info.type):
        many = getattr(kind, "__origin__", None) is list
        inside = members(get_args(kind)[0]) if many else (kind,)
        blocks = tuple(each for each in inside if isinstance(each, type) and issubclass(each, Strict))
        if blocks:
            return key._replace(blocks=blocks, many=many)
    return key


def members(kind: Any) -> tuple[Any, ...]:
    """The types that a type allows, without what is said about them and without None.

    `typing.get_origin` asks what a type is in a dozen ways; of the keys of a file, that took longer than reading it.
    """
    if isinstance(kind, type):
        return () if kind is NoneType else (kind,)
    if hasattr(kind, "__metadata__"):
        return members(kind.__origin__)
    if isinstance(kind, UnionType) or getattr(kind, "__origin__", None) is Union:
        return tuple(inner for member in kind.__args__ for inner in members(member))
    return (kind,)


def _prepared(block: type[Strict], data: Any) -> Any:
    """The data as the shapes describe it: without empty keys, and with other spellings put right."""
    if not isinstance(data, Mapping):
        return data
    keys = keys_of(block)
    kept = {}
    for name, value in block._spelled(data).items():
        key = keys.get(name)
        if key is None or not key.blocks:
            if value is not None or key is None or key.required:
                kept[name] = value
        elif value is not None or key.required:
            kept[name] = _nested(key, value)
    return kept


def _nested(key: Key, value: Any) -> Any:
    if not key.many:
        return _prepared(key.blocks[0], value)
    keyed = key.blocks[0].KEYED
    if isinstance(value, Mapping) and keyed:
        value = [_entry(keyed, name, settings) for name, settings in value.items()]
    if not isinstance(value, list):
        return value
    return [item if (block := key.block(item)) is None else _prepared(block, item) for item in value]


def _entry(keyed: str, name: str, settings: Any) -> Any:
    """One entry of the mapping form: `{overflow: {inject_tokens: 9}}`, `{overflow: }` or `{overflow: false}`."""
    if settings is None or isinstance(settings, bool):
        return {keyed: name, "enabled": settings is not False}
    return {keyed: name, **settings} if isinstance(settings, Mapping) else settings


def _default(info: FieldInfo) -> Any:
    return info.default_factory() if callable(info.default_factory) else info.default
