"""`flakestorm scan`: personal data and injected instructions in files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.streams import given
from flakestorm.errors import Misuse
from flakestorm.reports.text import counted, one_line, visible

if TYPE_CHECKING:
    from flakestorm.patterns.finding import Finding

__all__ = ["MAX_BYTES", "STDIN", "scan"]

MAX_BYTES = 256 << 20
"""Larger files are not read."""

STDIN = "-"
"""What stands for standard input among the files; a file of that name is `./-`."""


@click.command()
@global_options
@click.argument("names", metavar="FILE...", type=click.Path(), nargs=-1, required=True)
def scan(options: Globals, names: tuple[str, ...]) -> int:
    """Find personal data and injected instructions in files.

    A FILE is one document, and so is standard input, as `-`; in a .jsonl file each line is one, its text under `text`.
    Nothing leaves this machine.

    Each finding has a confidence from 0 to 1. Numbers that may be more than one thing are reported as each of them.
    With --format json, one `flakestorm-scan/1` object. The exit code is 0 if nothing was found, 1 if something was, and
    2 if a file could not be read; the others are scanned all the same.
    """
    if options.format not in (None, "json", "terminal"):
        raise Misuse(f"scan has no --format {options.format}; it has terminal and json")
    if names.count(STDIN) > 1:
        raise Misuse("standard input can be read once; give - once")
    documents: list[dict[str, Any]] = []
    lines: list[str] = []
    unreadable = 0
    for name in names:
        file = Path(name)
        try:
            for index, text in _documents(None if name == STDIN else file):
                found = _findings(text)
                where = {"file": str(file)} if index is None else {"file": str(file), "index": index}
                documents.append({**where, "findings": [finding._asdict() for finding in found]})
                lines += _described(file, index, text, found)
        except (OSError, ValueError, Misuse) as error:
            unreadable += 1
            what = "standard input" if name == STDIN else visible(str(file))
            click.echo(f"error: {what} cannot be scanned: {_reason(error)}", err=True)
    _put(documents, lines, options)
    if unreadable:
        return 2
    return 1 if any(document["findings"] for document in documents) else 0


def _findings(text: str) -> list[Finding]:
    from flakestorm.patterns.everything import findings

    return findings(text)


def _documents(file: Path | None) -> Iterator[tuple[int | None, str]]:
    """The documents of a file, or of standard input, each with its place in it; None for one that is a document."""
    if file is None:
        data = given(MAX_BYTES)
    else:
        with file.open("rb") as opened:  # not by its size: a pipe has none
            data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Misuse(f"it has more than {MAX_BYTES >> 20} MiB; split it")
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Misuse("it is not text")
    if file is None or file.suffix.lower() != ".jsonl":
        yield None, _decoded(data)
        return
    lines = [line for line in enumerate(_decoded(data).split("\n"), 1) if line[1].strip()]
    yield from enumerate([_text_of(line, number) for number, line in lines])


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    return data.decode("utf-8-sig")


def _text_of(line: str, number: int) -> str:
    import orjson

    try:
        value = orjson.loads(line)
    except ValueError as error:
        raise Misuse(f"line {number} is no JSON: {error}") from None
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise Misuse(f'line {number} has no `text`; each line must be an object like {{"text": "..."}}')
    return text


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {error.start}); convert it first"
    return visible(error.strerror or str(error)) if isinstance(error, OSError) else visible(str(error))


def _described(file: Path, index: int | None, text: str, found: list[Finding]) -> Iterator[str]:
    where = str(file) if index is None else f"{file}[{index}]"
    for f in found:
        what = _masked(text[f.start : f.end]) if f.kind == "pii" else one_line(text[f.start : f.end], 60)
        yield f"{visible(where)}:{f.start}-{f.end}  {f.kind} {f.entity} ({f.confidence:.2f}, {f.id})  {what}"


def _masked(text: str) -> str:
    from flakestorm.contracts.evidence import mask

    return one_line(mask(text), 60)


def _put(documents: list[dict[str, Any]], lines: list[str], options: Globals) -> None:
    if options.format == "json" or (options.output is not None and options.output.suffix == ".json"):
        import orjson

        whole = {"format": "flakestorm-scan/1", "documents": documents}
        text = orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode()
    else:
        hit = sum(bool(document["findings"]) for document in documents)
        total = f"{counted(len(lines), 'finding')} in {hit} of {counted(len(documents), 'document')}"
        text = "\n".join([*([] if options.quiet else lines), total])
    if options.output is None:
        click.echo(text)
        return
    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Misuse(f"cannot write {options.output}: {error.strerror}; choose another path with -o") from None
