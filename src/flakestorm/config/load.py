"""Reading `flakestorm.yaml`.

A file is read in one direction: text -> tree with lines -> `${VAR}` -> checks -> model. Whatever is wrong is raised
as one `ConfigError` that names every problem with its file, line and key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping as Variables
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from flakestorm.config.checks import check, name_invariants
from flakestorm.config.expand import expand, literal_keys
from flakestorm.config.marked import MAX_BYTES, Mapping, Node, Scalar, parse, unfold
from flakestorm.config.model import Config
from flakestorm.config.problems import Problem, config_error, node_at, problems_of
from flakestorm.errors import ConfigError

__all__ = ["load", "loads", "read", "reads", "text_of"]

M = TypeVar("M", bound=BaseModel)


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
    config = reads(text, Config, file=file, variables=variables)
    config._folder = str(Path(folder).resolve())
    return config


def read(path: str | os.PathLike[str], model: type[M]) -> M:
    """A YAML file of another shape (a chaos profile, a replay session), read as strictly as the configuration.

    Raises:
        ConfigError: it cannot be read or is wrong.
    """
    return reads(text_of(path), model, file=str(path))


def reads(text: str, model: type[M], *, file: str | None = None, variables: Variables[str, str] | None = None) -> M:
    """As `read`, for a text.

    Raises:
        ConfigError: it is wrong.
    """
    root = parse(text, file=file)
    if not isinstance(root, Mapping):
        raise ConfigError("the file must be a mapping: 'key: value' lines", file=file, line=root.line)
    problems = list(literal_keys(root))
    if not problems:  # a literal key must not be looked at any further
        problems += expand(root, os.environ if variables is None else variables)
    refused = {problem.path for problem in problems}
    problems += (problem for problem in check(root, model) if problem.path not in refused)
    name_invariants(root, model)
    built = _build(root, model)
    if isinstance(built, list):
        reported = {problem.path for problem in problems}
        problems += (problem for problem in built if problem.path not in reported)
    if problems or isinstance(built, list):
        raise config_error(problems, file=file)
    return built


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
        return model.model_validate(unfold(root))
    except ValidationError as error:
        if not _as_written(error, root):
            return list(problems_of(error, root, model))
    try:
        return model.model_validate(unfold(root))
    except ValidationError as error:
        return list(problems_of(error, root, model))


def _as_written(error: ValidationError, root: Node) -> bool:
    """Where text is wanted and the file has a bare `8000`, `yes` or `1.10`, it means the text as written.

    Returns:
        Whether anything changed, so that another look is worth it.
    """
    changed = False
    for detail in error.errors(include_url=False, include_context=False):
        if detail["type"] != "string_type":
            continue
        node = node_at(detail["loc"], root)
        if isinstance(node, Scalar) and node.plain and node.value is not None and not isinstance(node.value, str):
            node.value, changed = node.raw, True
    return changed
