"""`flakestorm mutate`: what `run` would send, without sending it."""

from __future__ import annotations

import json

import click

from flakestorm import api
from flakestorm.api.mutating import recipe_of
from flakestorm.cli.options import Globals, global_options
from flakestorm.cli.streams import given
from flakestorm.config.vocabulary import MUTATION_TYPES
from flakestorm.core.choices import entropy_seed
from flakestorm.errors import Misuse
from flakestorm.mutations.base import Mutation
from flakestorm.mutations.generate import Recipe, made
from flakestorm.mutations.outgoing import Outgoing
from flakestorm.reports.text import one_line

__all__ = ["mutate"]

_DEFAULT = 5
_SHOWN = 300
_LIMIT_BYTES = 4 << 20


@click.command()
@global_options
@click.argument("prompt")
@click.option("--type", "kinds", multiple=True, metavar="TYPE", help="Of this type; may be given again.")
@click.option("--count", type=click.IntRange(1, 1000), help=f"How many of each type (the config's, else {_DEFAULT}).")
def mutate(options: Globals, prompt: str, kinds: tuple[str, ...], count: int | None) -> int:
    """Show the mutations of a prompt; nothing is sent.

    PROMPT is a text, or - for what stands on standard input. Without --type, of the types of the config, if there is
    one. The same --seed gives the same mutations.
    """
    prompt = _given() if prompt == "-" else prompt
    recipe = _recipe(options, kinds, count)
    for kind in recipe.types:
        complaint = None if kind == "custom" and recipe.templates else MUTATION_TYPES.complaint(kind)
        if complaint or (kind == "custom" and not recipe.templates):
            raise Misuse(complaint or "type 'custom' needs mutations.custom_templates in the config")
    found, notes = made(recipe, prompt)
    if options.format == "json":
        click.echo(json.dumps([_document(m) for m in found], indent=2))
    else:
        _show(found, recipe.seed)
    for note in notes:
        click.echo(f"note: {one_line(note, 400)}", err=True)
    return 0


def _given() -> str:
    """The prompt on standard input, without its last line break."""
    data = given(_LIMIT_BYTES)
    if len(data) > _LIMIT_BYTES:
        raise Misuse(f"standard input holds more than {_LIMIT_BYTES >> 20} MiB, which is no prompt")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misuse(f"standard input is not UTF-8 (byte {error.start}); convert it first") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise Misuse("standard input is empty; write the prompt there, or give it as the argument")
    return text


def _recipe(options: Globals, kinds: tuple[str, ...], count: int | None) -> Recipe:
    """What the config says, as far as there is one, and the command line before it."""
    if options.config is not None or options.config_path.is_file():
        config = api.load(options.config_path).config
        seed = options.seed if options.seed is not None else config.advanced.seed
        base = recipe_of(config, entropy_seed() if seed is None else seed)
    else:
        from flakestorm.config.model import Mutations

        seed = entropy_seed() if options.seed is None else options.seed
        base = Recipe(Mutations().types, _DEFAULT, seed, {}, {})
    return Recipe(kinds or base.types, count or base.count, base.seed, base.weights, base.templates)


def _show(found: list[Mutation], seed: int) -> None:
    last = ""
    for mutation in found:
        if mutation.type != last:
            click.echo(f"\n{mutation.type}  (weight {mutation.weight:g})")
            last = mutation.type
        said = one_line(mutation.text, _SHOWN) if mutation.change is None else _request(mutation)
        click.echo(f"  #{mutation.number} {mutation.operator} [{mutation.kind}]: {said}")
    click.echo(f"\n{len(found)} mutations, seed {seed}")


def _request(mutation: Mutation) -> str:
    """The changed request in one line, for a request as an agent without a template gets it."""
    body = json.dumps({"input": mutation.text}).encode()
    before = Outgoing("POST", "http://agent/", headers=(("Content-Type", "application/json"),), body=body)
    after = mutation.change(before) if mutation.change is not None else before
    how = after.delivery
    facts = [
        f"{after.method} with {len(after.params)} parameters, {len(after.headers)} headers, {len(after.body)} bytes"
    ]
    facts += [f"in chunks of {how.chunk_bytes}"] if how.chunk_bytes else []
    facts += [f"HTTP/{how.version}"] if how.version != "1.1" else []
    facts += [f"{how.copies} at once"] if how.copies > 1 else []
    facts += [f"{how.pieces} pieces, {how.pause_s * 1000:.0f} ms apart"] if how.pause_s else []
    return ", ".join(facts)


def _document(mutation: Mutation) -> dict[str, object]:
    return {
        "type": mutation.type,
        "operator": mutation.operator,
        "kind": mutation.kind,
        "number": mutation.number,
        "weight": mutation.weight,
        "text": mutation.text,
        **({} if mutation.change is None else {"request": _request(mutation)}),
    }
