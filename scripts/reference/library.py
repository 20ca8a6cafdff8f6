"""docs/reference/python.md and docs/reference/pytest.md: what can be called, by its signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any

import flakestorm
from flakestorm import pytest_plugin
from flakestorm.contracts.base import RunView
from flakestorm.contracts.calls import ToolCall
from flakestorm.core.verdict import Verdict
from flakestorm.engine.events import CellResult, RunResult, Score
from flakestorm.pytest_plugin.marks import Mark
from flakestorm.pytest_plugin.runs import Run, RunTape
from flakestorm.pytest_plugin.taping import HeldTape

from .markdown import cell, prose, table

__all__ = ["page", "plugin"]

_INTRO = """# From Python

Everything that `import flakestorm` offers. The engine behind it is imported when it is first asked for.

```python
import flakestorm

report = flakestorm.load("flakestorm.yaml").contract()
print(report.verdict, report.headline)
```
"""
_PYTEST = """# In pytest

The plug-in comes with flakestorm and costs nothing where it is not used. [Testing with pytest](../how-to/pytest.md)
shows it at work.
"""
_FUNCTIONS = ("load", "record", "replay", "fork", "compare")


def page() -> str:
    """The page of the Python interface."""
    named = {name: getattr(flakestorm, name) for name in flakestorm.__all__ if name != "__version__"}
    rest = [name for name in named if name not in _FUNCTIONS]
    parts = [_INTRO, "## Functions"]
    for name in _FUNCTIONS:
        parts += _function(f"flakestorm.{name}", named[name])
    parts += ["## Classes"]
    for name in sorted(rest, key=lambda each: (each != "Project", each)):
        parts += _class(f"flakestorm.{name}", named[name], () if name == "Project" else None)
        if name == "Project":
            for word, method in vars(named[name]).items():
                if inspect.isfunction(method) and not word.startswith("_"):
                    parts += _function(f"project.{word}", method)
    parts += ["## What a report holds", "Its fields are those of [the JSON form](formats.md)."]
    for kind in (Score, CellResult, RunResult):
        parts += _class(kind.__name__, kind)
    parts += ["## What a check of yours is given", "By `type: check`, and by plug-ins in `flakestorm.invariants`."]
    for seen in (RunView, ToolCall, Verdict):
        parts += _class(seen.__name__, seen)
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def plugin() -> str:
    """The page of the pytest plug-in."""
    parts = [_PYTEST, "## Fixtures"]
    for fixture in (pytest_plugin.agent_run, pytest_plugin.tape):
        plain = inspect.unwrap(getattr(fixture, "__wrapped__", fixture))
        parts += [f"### {plain.__name__}", prose(inspect.getdoc(plain))]
    parts += [
        "## Marker",
        "`@pytest.mark.flakestorm(...)`, on a test, a class or a module.",
        prose(inspect.getdoc(Mark)),
    ]
    parts += ["## Options", table(("option", "does"), _options())]
    parts += ["## What the fixtures give"]
    parts += [*_class("`run = agent_run(...)`", Run), *_class("`run.tape`", RunTape)]
    parts += _class("`tape`", HeldTape, ("calls", "exchanges"))
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _options() -> list[tuple[str, str]]:
    """What the plug-in adds to pytest's command line."""
    found: list[tuple[str, str]] = []

    class Group:
        def addoption(self, name: str, *, help: str, **_: Any) -> None:  # noqa: A002 - pytest's own name
            found.append((f"`{name}`", cell(help)))

    class Parser:
        def getgroup(self, *_: str) -> Group:
            return Group()

    pytest_plugin.pytest_addoption(Parser())  # type: ignore[arg-type]
    return found


def _function(name: str, function: Any) -> list[str]:
    return [f"### {name}", _signature(name.rpartition(".")[2], function), prose(inspect.getdoc(function))]


def _class(name: str, kind: type, members: Collection[str] | None = None) -> list[str]:
    """A class: what its docstring says, and its public members, or those of them that are named."""
    parts = [f"### {name}"] if name else []
    parts.append(re.sub(r"^Args:$", "Fields:", prose(inspect.getdoc(kind)), count=1, flags=re.MULTILINE))
    rows = []
    for word, member in vars(kind).items():
        doc = inspect.getdoc(member) if callable(member) or isinstance(member, property) else None
        if word.startswith("_") or not doc or (members is not None and word not in members):
            continue
        if isinstance(member, property):
            rows.append((f"`{word}`", cell(doc.partition("\n\n")[0])))
        else:
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            rows.append((f"`{word}({_parameters(plain)})`", cell(doc.partition("\n\n")[0])))
    return [*parts, table(("member", "does"), [(a.replace("|", "\\|"), b) for a, b in rows]) if rows else ""]


def _signature(name: str, function: Any) -> str:
    parameters = _parameters(function, annotated=True)
    one = f"{name}({', '.join(parameters)})"
    if len(one) > 100:
        one = f"{name}(\n" + "".join(f"    {each},\n" for each in parameters) + ")"
    returns = inspect.signature(function).return_annotation
    return f"```python\n{one} -> {_type(returns)}\n```"


def _parameters(function: Any, *, annotated: bool = False) -> Any:
    """The parameters: a list with types, or one text of names."""
    made: list[str] = []
    star = False
    for name, each in inspect.signature(function).parameters.items():
        if name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not star:
            made.append("*")
            star = True
        sign = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        text = f"{sign}{name}" + (f": {_type(each.annotation)}" if annotated else "")
        if each.default is not each.empty:
            plain = each.default is None or isinstance(each.default, bool | int | float | str | tuple)
            text += (" = " if annotated else "=") + (repr(each.default) if plain else "...")
        made.append(text)
    return made if annotated else ", ".join(made)


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)
