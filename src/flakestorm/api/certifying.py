"""Certificates: issued over a report and its tapes, and checked by whoever is shown one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from flakestorm.config.load import load, loads, text_of
from flakestorm.config.model import Config
from flakestorm.engine.events import Report
from flakestorm.errors import ConfigError, MissingExtra, Misuse
from flakestorm.reports import dsse, statement
from flakestorm.reports.files import write_whole
from flakestorm.reports.statement import Subject, Terms
from flakestorm.store.content import digest_of

__all__ = ["LIMIT_BYTES", "SUFFIX", "Checked", "Issued", "check", "config_of", "envelope_of", "issue", "terms_of"]

SUFFIX = ".dsse.json"
LIMIT_BYTES = 64 * 1024 * 1024
"""An envelope or page larger than this is no certificate."""

Form = Literal["html", "pdf"]


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that was written: its two files, who signed, how many tapes it names, and what it says."""

    page: Path
    envelope: Path
    keyid: str
    public: bytes
    tapes: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found out about a certificate.

    Args:
        problems: why it is not valid; none where it is.
        keys: the public keys of those who signed, where their signatures are valid.
        statement: what was signed, where the signatures are valid.
        page: whether the page was there to be checked.
    """

    problems: tuple[str, ...]
    keys: tuple[bytes, ...] = ()
    statement: dict[str, Any] | None = None
    page: bool = False


class _Lenient(dict[str, str]):
    """Variables of which those that are not set stand for themselves."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, f"${{{name}}}")


def config_of(file: Path) -> Config:
    """A config, for what it says of a certificate: variables it needs for other things (keys, ports) may be unset.

    Raises:
        ConfigError: it cannot be read or is wrong, or a variable in the tester's or the contract's words is not set.
    """
    try:
        config = loads(text_of(file), file=str(file), folder=file.resolve().parent, variables=_Lenient(os.environ))
    except ConfigError:
        return load(file)  # a variable may have been what is wrong; this says which
    contract = config.contract
    words = [config.certificate.tester_name, *((contract.name, contract.description) if contract is not None else ())]
    return load(file) if any("${" in (text or "") for text in words) else config


def terms_of(config: Config | None, file: Path | None, report: Report) -> Terms:
    """What a config says of a certificate.

    Args:
        config, file: the config as it is now, if there is one.
        report: what the certificate is about.
    """
    if config is None or file is None:
        return Terms()
    contract = config.contract
    return Terms(
        tester=config.certificate.tester_name,
        pass_threshold=config.certificate.pass_threshold,
        contract=None if contract is None else contract.name,
        description="" if contract is None else contract.description or "",
        config=file.name,
        config_sha256=digest_of(file),
        notes=_newer(file, report),
    )


def _newer(file: Path, report: Report) -> tuple[str, ...]:
    try:
        began = datetime.fromisoformat(report.started_at)
        written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        if written <= began:
            return ()
    except (ValueError, TypeError, OSError):
        return ()
    return (f"{file.name} was written after these runs began; name and digest are those of the file as it is now",)


def envelope_of(page: Path) -> Path:
    """Where the envelope of this page lies: beside it."""
    return page.with_name(f"{page.stem}{SUFFIX}")


def issue(report: Report, terms: Terms, page: Path, *, form: Form, signer: dsse.Signs, now: datetime) -> Issued:
    """Write a certificate: the page for people, and beside it the signed envelope.

    Args:
        report: what it is about.
        terms: the config's words.
        page: where the page goes.
        form: of the page.
        signer: the key.
        now: when it is issued.

    Raises:
        Misuse: a tape is gone or there is none, so there is nothing to vouch for, or a file cannot be written.
        MissingExtra: the page's form needs an extra.
    """
    envelope = envelope_of(page)
    subjects = _subjects(report, page.absolute().parent)
    issued = now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    said = statement.of(report, subjects, terms, issued_at=issued)
    keyid = dsse.keyid_of(signer.public)
    content = _page(said, form, keyid, envelope.name)
    said["predicate"]["page"] = {"name": page.name, "digest": {"sha256": hashlib.sha256(content).hexdigest()}}
    sealed = dsse.sealed(orjson.dumps(said), [signer])
    write_whole(page, content)
    write_whole(envelope, sealed)
    return Issued(page, envelope, keyid, signer.public, len(subjects), said["predicate"]["verdict"])


def check(file: Path, *, trusted: bytes | None = None, folders: Sequence[Path] = ()) -> Checked:
    """Check a certificate: its signatures, its page where that lies beside it, and every tape.

    Args:
        file: the envelope, or the page beside it.
        trusted: the public key that must be among those that signed.
        folders: where to look for tapes that are not where they were; also `content` of a store.

    Raises:
        Misuse: there is no such file.
        MissingExtra: the extra `signing` is not installed.
    """
    envelope = file if file.name.endswith(".json") else envelope_of(file)
    try:
        payload, keys = dsse.opened(_read(envelope))
        said = orjson.loads(payload)
    except ValueError as error:
        return Checked((f"{envelope}: {error}",))
    problem = statement.problems(said)
    if problem is not None:
        return Checked((f"{envelope}: {problem}",), keys)
    problems = []
    if trusted is not None and trusted not in keys:
        signed = ", ".join(dsse.keyid_of(key)[:16] for key in keys)
        problems.append(f"{envelope}: it is signed by {signed}, not by the key {dsse.keyid_of(trusted)[:16]}")
    base = envelope.absolute().parent
    page, wrong = _page_problem(said, base, asked=None if file is envelope else file)
    problems += wrong
    for subject in said["subject"]:
        problems += _tape_problem(subject["name"], subject["digest"]["sha256"], base, folders)
    return Checked(tuple(problems), keys, said, page)


def _subjects(report: Report, base: Path) -> list[Subject]:
    found, gone = [], []
    for run in report.runs:
        if not run.tape:
            continue
        tape = Path(run.tape).absolute()
        if "\0" in run.tape or not tape.is_file():
            gone.append(f"{run.id} ({run.tape})")
            continue
        found.append(Subject(run.id, _seen_from(tape, base), digest_of(tape)))
    if gone:
        more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
        raise Misuse(
            f"tapes of this report are gone: {', '.join(gone[:5])}{more}; without them nobody could check a "
            "certificate. Certify the saved report by its id (`flakestorm report` lists them), or run the command again"
        )
    if not found:
        raise Misuse("this report has no tapes, so there is nothing a certificate could vouch for")
    return found


def _seen_from(tape: Path, base: Path) -> str:
    try:
        return Path(os.path.relpath(tape, base)).as_posix()
    except ValueError:  # another drive
        return tape.as_posix()


def _page(said: dict[str, Any], form: Form, keyid: str, envelope: str) -> bytes:
    if form == "html":
        from flakestorm.reports.certificate import page

        return page(said, keyid=keyid, envelope=envelope).encode()
    try:
        from flakestorm.reports.certificate_pdf import pdf
    except ImportError as error:
        raise MissingExtra("a certificate as PDF", "pdf") from error
    return pdf(said, keyid=keyid, envelope=envelope)


def _page_problem(said: dict[str, Any], base: Path, asked: Path | None) -> tuple[bool, list[str]]:
    """Whether the page was there, and what is wrong with it. One that was asked about must be the one that is meant."""
    named = said["predicate"].get("page")
    name, digest = _named(named)
    page = asked or (base / name if name else None)
    if page is None or not page.is_file():
        return False, []
    if hashlib.sha256(_read(page)).hexdigest() == digest:
        return True, []
    return True, [f"{page}: the page was changed; the envelope is about another"]


def _named(entry: Any) -> tuple[str, str]:
    """Name and sha256 of a file beside the envelope; a name that leads elsewhere counts as none."""
    if not isinstance(entry, dict) or not isinstance(entry.get("digest"), dict):
        return "", ""
    name, digest = entry.get("name"), entry["digest"].get("sha256")
    if not isinstance(name, str) or "\0" in name or Path(name).name != name:
        name = ""
    return name, str(digest)


def _tape_problem(name: str, digest: str, base: Path, folders: Sequence[Path]) -> list[str]:
    if "\0" in name:
        return [f"{name!r}: this is no name of a tape"]
    usual = base / name
    short = Path(name).name
    names = [name, short, *([f"{digest[:2]}/{digest}"] if digest.isalnum() else [])]
    others = [folder / place for folder in folders for place in names]
    for place in (usual, *others):
        if place.is_file():
            if _digest(place) == digest:
                return []
            if place == usual:
                return [f"{name}: the tape was changed: its sha256 is not the one that was signed"]
    there = f", nor in {', '.join(map(str, folders))}" if folders else "; --tapes DIR says where else to look"
    return [f"{name}: the tape is missing{there}"]


def _digest(path: Path) -> str:
    try:
        return digest_of(path)
    except OSError as error:
        raise Misuse(f"{path}: the tape cannot be read: {error.strerror or error}") from error


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise Misuse(f"{path}: cannot be read: {error.strerror or error}; give a certificate's .dsse.json") from error
    if len(content) > LIMIT_BYTES:
        raise ValueError(f"it is larger than {LIMIT_BYTES // 1024**2} MB")
    return content
