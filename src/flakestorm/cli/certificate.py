"""`flakestorm certificate REPORT` and `flakestorm certificate verify FILE`."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from flakestorm.cli.options import Globals, global_options_with
from flakestorm.cli.saved import comparison_named, report_named, store_folder
from flakestorm.errors import Misuse
from flakestorm.reports.text import counted, one_line

if TYPE_CHECKING:
    from flakestorm.config.model import Config
    from flakestorm.engine.events import Report

__all__ = ["certificate"]

FORMS = ("html", "pdf")
_BY_SUFFIX = {".html": "html", ".htm": "html", ".pdf": "pdf"}
_options = global_options_with(FORMS)


class _Group(click.Group):
    """`verify` is a command; whatever else comes first is the report to certify, and help tells its options, too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = {param.name for param in self.params}
        issuing = (param for param in self.commands["issue"].params if isinstance(param, click.Option))
        more = [param.get_help_record(ctx) for param in issuing if param.name not in own]
        super().format_options(ctx, formatter)
        with formatter.section("Options with REPORT.json|RUN"):
            formatter.write_dl([record for record in more if record is not None])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "issue", self.commands["issue"], args

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options may stand before the report's name, or `verify`: they are those of the command, which comes first."""
        at, helps = self._first(ctx, args)
        if at is not None and not helps:
            name = args[at]
            args = [name, *args[:at], *args[at + 1 :]] if name in self.commands else ["issue", *args]
        return super().parse_args(ctx, args)

    def _first(self, ctx: click.Context, args: list[str]) -> tuple[int | None, bool]:
        """Where the first word is that is no option nor an option's value, and whether help was asked for before it."""
        flags = {
            name
            for command in self.commands.values()
            for param in command.params
            if isinstance(param, click.Option) and param.is_flag
            for name in param.opts
        }
        at, helps = 0, False
        while at < len(args):
            word = args[at]
            if not word.startswith("-") or word == "-":
                return at, helps
            helps = helps or word in ctx.help_option_names
            valued = "=" not in word if word.startswith("--") else len(word) == 2
            at += 2 if valued and word not in flags and word not in ctx.help_option_names else 1
        return None, helps


@click.group(cls=_Group, subcommand_metavar="REPORT.json|RUN [OPTIONS] | verify FILE")
@_options
def certificate(options: Globals) -> None:
    """Issue a signed certificate over a report and its tapes, or verify one.

    \b
    flakestorm certificate latest -o release.html
    flakestorm certificate reports/x/report.json --format pdf
    flakestorm certificate verify release.dsse.json

    Beside the page lies its .dsse.json: a DSSE envelope with an in-toto Statement that names every tape by its sha256,
    signed with Ed25519. The key is --key, else $FLAKESTORM_SIGNING_KEY, else the project's own in .flakestorm/, made
    once. A certificate says what was found, a failure too; tester and threshold come from the config's `certificate`.
    """


@certificate.command(hidden=True)
@_options
@click.argument("name", metavar="REPORT.json|RUN")
@click.option("--key", type=click.Path(path_type=Path), help="Ed25519 private key to sign with: PEM, or base64.")
def issue(options: Globals, name: str, key: Path | None) -> int:
    """Issue a certificate over a report and its tapes."""
    from flakestorm.api import certifying
    from flakestorm.reports.keys import key_for

    if comparison_named(name, options) is not None:
        raise Misuse(f"{name} is a comparison; a certificate is about a report of one version")
    report = report_named(name, options)
    config, file = _config(options, report)
    form, page = _place(options, name, "html" if config is None else config.certificate.output_format)
    signer = key_for(key, os.environ, store_folder(options))
    terms = certifying.terms_of(config, file, report)
    done = certifying.issue(report, terms, page, form=form, signer=signer, now=datetime.now(UTC))
    if not options.quiet:
        click.echo(f"certificate: {done.page} ({done.verdict})")
        click.echo(f"envelope: {done.envelope}, over {counted(done.tapes, 'tape')}, signed with key {done.keyid[:16]}")
    return 0


@certificate.command()
@_options
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--key", metavar="KEY", help="The public key that must have signed it: base64, or a file.")
@click.option(
    "--tapes", "folders", type=click.Path(path_type=Path, file_okay=False), multiple=True, metavar="DIR",
    help="Where to look for tapes that were moved.",
)  # fmt: skip
def verify(options: Globals, file: Path, key: str | None, folders: tuple[Path, ...]) -> int:
    """Verify a certificate: signature, page and tapes. Exits 0 if it is valid, 1 if not.

    FILE is the .dsse.json, or the page beside it. Without --key it says that nothing was changed since it was signed,
    and by which key, but not whose key that is.
    """
    from flakestorm.api.certifying import check
    from flakestorm.reports.dsse import keyid_of
    from flakestorm.reports.keys import public_key

    trusted = None if key is None else public_key(key)
    found = check(file, trusted=trusted, folders=folders)
    for problem in found.problems:
        click.echo(f"invalid: {one_line(problem, 1000)}")
    if found.problems or found.statement is None:
        return 1
    predicate = found.statement["predicate"]
    tester = (predicate.get("tester") or {}).get("name")
    by = ", ".join(keyid_of(each)[:16] for each in found.keys)
    page = "" if found.page else "; its page is not here"
    click.echo(f"valid: {counted(len(found.statement['subject']), 'tape')} unchanged, signed by key {by}{page}")
    if not options.quiet:
        click.echo(f"it says: {one_line(str(predicate.get('verdict')), 40)}, tester {one_line(str(tester), 200)}")
        if trusted is None:
            click.echo("whose key it is was not checked; --key does, with the public key that the tester gave you")
    return 0


def _config(options: Globals, report: Report) -> tuple[Config | None, Path | None]:
    """The config that -c names, else the report's own where it is still there, else the one of this folder."""
    from flakestorm.api.certifying import config_of

    if options.config is not None:
        return config_of(options.config), options.config
    own = Path(report.config) if report.config and "\0" not in report.config else None
    file = next((f for f in (own, options.config_path) if f is not None and f.is_file()), None)
    return (None, None) if file is None else (config_of(file), file)


def _place(options: Globals, name: str, configured: str) -> tuple[Literal["html", "pdf"], Path]:
    """The page's form and file, from --format, what -o ends with, and the config."""
    asked, file = options.format, options.output
    if file is None:
        folder = Path(name).parent if Path(name).is_file() else Path()
        file = folder / f"certificate.{asked or configured}"
    if file.name.endswith(".dsse.json"):
        file = file.with_name(file.name.removesuffix(".dsse.json") + f".{asked or configured}")
    said = _BY_SUFFIX.get(file.suffix.lower())
    if said is None:
        raise Misuse(f"{file}: -o names the certificate's page, which ends with .html or .pdf")
    if asked is not None and asked != said:
        raise Misuse(f"--format {asked}, but {file} ends with {file.suffix}; make them agree")
    return cast("Literal['html', 'pdf']", said), file
