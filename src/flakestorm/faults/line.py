"""The one-line form of a fault's settings, which loses nothing and stays one line.

A fault is written `TARGET=MODE:ARG,KEY=VALUE,...`, for example::

    tool/search#1=error:503
    tool/search#1=error:503,message=back soon
    llm/gpt-4o*=timeout:15000,probability=0.3
    tool/pay=slow,calls=1,calls=3

ARG is the mode's main setting, and every other setting follows by its name in the config. A list is its name repeated,
and an empty one its name alone. In values, `%`, `,`, `;` and what would not survive a line are percent-encoded. A comma
that no known name follows belongs to the text before it, so that a text may be typed as it is.
"""

from __future__ import annotations

import re
from typing import Any, get_origin
from urllib.parse import unquote

from flakestorm.config.base import keys_of, members
from flakestorm.config.model import ContextAttack, LlmFault, ToolFault
from flakestorm.core.regex import later
from flakestorm.core.registry import nearest
from flakestorm.errors import Misuse

__all__ = ["EXCERPT_CHARS", "Spec", "read_settings", "settings"]

Spec = ToolFault | LlmFault | ContextAttack

EXCERPT_CHARS = 60
"""How much of a value is shown where a line is for reading only."""

_FIRST = ("match_url", "probability", "trigger_probability", "after_calls", "calls", "times")
_ELSEWHERE = frozenset(("mode", "type", "site"))  # what the target and the mode say
_SAID = (("where", "result"), ("enabled", True))  # by the mode's form; by its being there
_UNSAFE = later(r"[%,;\x00-\x1f\x7f-\x9f\u2028\u2029]|^ | $|(?<= ) ")
_KEY = later(r",([a-z_]+)=")


def settings(spec: Spec, argument: str | None, *, excerpt: bool = False) -> str:
    """What follows the mode: `:ARG` and `,KEY=VALUE` for each other setting that was given, triggers first.

    Args:
        spec: the fault's settings.
        argument: which of them ARG is; None where the mode has none.
        excerpt: cut values that are long, for reading.
    """
    given = spec.given()
    main = None if argument is None else given.pop(argument, None)
    names = [*(name for name in _FIRST if name in given), *(name for name in given if name not in _FIRST)]
    parts = [] if main is None else [f":{_quoted(main, excerpt)}"]
    for name in names:
        value = given[name]
        if value is None or name in _ELSEWHERE or (name, value) in _SAID or _in_target(spec, name):
            continue
        if isinstance(value, list):
            parts += [f",{name}={_quoted(item, excerpt)}" for item in value] or [f",{name}"]
        else:
            parts.append(f",{name}={_quoted(value, excerpt)}")
    return "".join(parts)


def read_settings(text: str, kind: type[Spec], argument: str | None) -> dict[str, Any]:
    """The inverse of `settings`: values as text, or lists of it, for the model to read.

    Args:
        text: empty, or beginning with `:` or `,`.
        kind: whose settings they are.
        argument: which of them ARG is; None where the mode has none.

    Raises:
        Misuse: it is not of this form, or there is no such setting.
    """
    names = [name for name in keys_of(kind) if name not in _ELSEWHERE]
    known = re.compile(rf",({'|'.join(map(re.escape, names))})(?==|,|$)")
    main, *pairs = known.split(text)
    _check(main, kind, argument, names)
    found: dict[str, Any] = {}
    if main:
        found[str(argument)] = unquote(main[1:])
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        if _is_list(kind, name):
            _check(value, kind, name, names)
            found.setdefault(name, []).extend([unquote(value[1:])] if value else [])
        elif not value:
            raise Misuse(f"{name!r} has no value; write {name}=VALUE")
        elif name in found:
            raise Misuse(f"{name!r} is given twice")
        else:
            _check(value, kind, name, names)
            found[name] = unquote(value[1:])
    return found


def _check(value: str, kind: type[Spec], name: str | None, names: list[str]) -> None:
    """A comma in a value that is no text, or in the place of one, is followed by a name that is none."""
    if value.startswith(":") and name is None:
        raise Misuse("the mode takes no argument")
    wrong = _KEY.search(value)
    if wrong is None or (name is not None and _is_text(kind, name) and not value.startswith(",")):
        return
    close = nearest(wrong[1], names)
    raise Misuse(
        f"there is no setting {wrong[1]!r} here; "
        + (f"did you mean {close!r}?" if close else f"known: {', '.join(names)}")
    )


def _in_target(spec: Spec, name: str) -> bool:
    """Whether the target says this setting: the tool's or the model's name, unless a site stands in its place."""
    return name in ("tool", "model") and (spec.site is None or getattr(spec, name) == "*")


def _is_list(kind: type[Spec], name: str) -> bool:
    return any(get_origin(member) is list for member in members(keys_of(kind)[name].kind))


def _is_text(kind: type[Spec], name: str) -> bool:
    kinds = members(keys_of(kind)[name].kind)
    return str in kinds or list[str] in kinds


def _quoted(value: Any, excerpt: bool) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    quoted = _UNSAFE.sub(lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode("utf-8", "surrogatepass")), text)
    return quoted if not excerpt or len(quoted) <= EXCERPT_CHARS else quoted[: EXCERPT_CHARS - 1] + "…"
