"""Reading `flakestorm.yaml`.

A file is read in one direction: text -> tree with lines -> `${VAR}` -> checks -> model. Whatever is wrong is raised
as one `ConfigError` that names every problem with its file, line and key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from collections.abc import Mapping as Variables
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from flakestorm.config.base import Strict
from flakestorm.config.checks import check, name_invariants
from flakestorm.config.expand import expand, literal_keys
from flakestorm.config.marked import MAX_BYTES, Mapping, Node, parse, unfold
from flakestorm.config.model import Config
from flakestorm.config.origins import mark, read_schemas
from flakestorm.config.problems import Path as Place
from flakestorm.config.problems import Problem, config_error, problems_of, written_at
from flakestorm.errors import ConfigError, Misuse

__all__ = ["load", "loads", "located", "placing", "read", "reads", "text_of"]

M = TypeVar("M", bound=Strict)


def load(path: str | os.PathLike[str]) -> Config:
    """The configuration in a file.

    Raises:
        ConfigError: it cannot be read or is wrong; the message names file, line and key of every problem.
    """
    return loads(text_of(path), file=str(path), folder=Path(path).resolve().parent)


def loads(
    text: str,
    *,
    file: str | None = None,
    folder: str | os.PathLike[str] = ".",
    variables: Variables[str, str] | None = None,
) -> Config:
    """The configuration in a text.

    Args:
        text: YAML.
        file: what messages call it.
        folder: what relative paths in it are relative to.
        variables: what `${VAR}` stands for; default: the environment.

    Raises:
        ConfigError: it is wrong.
    """
    return reads(text, Config, file=file, folder=folder, variables=variables).at(str(Path(folder).resolve()))


def read(path: str | os.PathLike[str], model: type[M]) -> M:
    """A YAML file of another shape (a chaos profile, a replay session), read as strictly as the configuration.

    Raises:
        ConfigError: it cannot be read or is wrong.
    """
    return reads(text_of(path), model, file=str(path), folder=Path(path).resolve().parent)


def reads(
    text: str,
    model: type[M],
    *,
    file: str | None = None,
    folder: str | os.PathLike[str] = ".",
    variables: Variables[str, str] | None = None,
    literal: bool = False,
) -> M:
    """As `read`, for a text; relative paths in it are relative to `folder`. With `literal`, all values are words that
    somebody said: nothing is expanded, and a key in them is no setting.

    Raises:
        ConfigError: it is wrong.
    """
    root = parse(text, file=file)
    if not isinstance(root, Mapping):
        raise ConfigError("the file must be a mapping: 'key: value' lines", file=file, line=root.line)
    problems = [] if literal else list(literal_keys(root))
    if not problems and not literal:  # a literal key must not be looked at any further
        problems += expand(root, os.environ if variables is None else variables)
    refused = {problem.path for problem in problems}
    problems += (problem for problem in check(root, model) if problem.path not in refused)
    problems += (problem for problem in read_schemas(root, folder) if problem.path not in refused)
    name_invariants(root, model)
    built = _build(root, model)
    if isinstance(built, list):
        reported = {problem.path for problem in problems}
        problems += (problem for problem in built if problem.path not in reported)
    if problems or isinstance(built, list):
        raise config_error(problems, file=file)
    mark(root, built, file=file, folder=Path(folder).resolve())
    return built


def located(error: Misuse, file: Path, place: Place) -> ConfigError:
    """What is wrong with what stands at a place of a file, with the line it stands on.

    Args:
        error: what is wrong.
        file: a file that has been read without trouble.
        place: keys and indexes from the top of it.
    """
    path, line = written_at(place, parse(text_of(file), file=str(file)))
    return ConfigError(str(error), file=file, line=line, key=Problem(path, line, "").key)


@contextmanager
def placing(file: Path) -> Iterator[None]:
    """While entered, a `ConfigError` that names a key gets the line of that key, in this file if it names none.

    Many settings are understood only by what uses them, which knows the key and not where it was written. A key that is
    not there (it is missing, or was never in a file) leads to the line of the block that it belongs to; where the file
    cannot be read any more, or holds something else, the error stays as it is.

    Args:
        file: a configuration that has been read, as the user named it.
    """
    try:
        yield
    except ConfigError as error:
        if error.line is not None or error.key is None:
            raise
        there = file if error.file is None else error.file
        try:
            _, line = written_at(_place_of(error.key), parse(text_of(there), file=str(there)))
        except ConfigError:
            raise error from error.__cause__
        raise ConfigError(error.message, file=there, line=line, key=error.key) from error


def _place_of(key: str) -> Place:
    """A key as people write it, `golden_prompts[1]`, as the keys and indexes it leads by."""
    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", key)
    return tuple(int(index) if index else name for index, name in parts)


def text_of(path: str | os.PathLike[str]) -> str:
    """The text of a file of at most 4 MB.

    Raises:
        ConfigError: there is no such file, it cannot be read, is too large or is not UTF-8.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            "no such file; 'flakestorm init' writes a starter, -c names another file", file=path
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", file=path) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // 1024 // 1024} MB", file=path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 text; save the file as UTF-8", file=path, line=line) from None


def _build(root: Node, model: type[M]) -> M | list[Problem]:
    try:
        return model.of(unfold(root))
    except ValueError:
        problems = list(problems_of(root, model))  # this also takes bare values as they were meant
    return problems or model.of(unfold(root))
