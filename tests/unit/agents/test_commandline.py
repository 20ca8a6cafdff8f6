"""Argument lists, and inputs that stay one argument whatever they hold."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flakestorm.agents.commandline import command_line, takes_prompt
from flakestorm.errors import ConfigError

NASTY = "a \"b\" 'c' $HOME `id` $(id) ; id | cat > x \\ \n {prompt} * é"


def test_a_list_is_taken_as_it_is() -> None:
    assert command_line(["run", "a b", "x={prompt};y"], prompt=NASTY) == ["run", "a b", f"x={NASTY};y"]


def test_a_plain_string_is_split_as_a_shell_would() -> None:
    assert command_line("run 'a b' --x={prompt} {prompt}", prompt=NASTY) == ["run", "a b", f"--x={NASTY}", NASTY]


@pytest.mark.parametrize(
    "start", ["a && b", "a | b", "a > b", "echo $HOME", "X=1 run", "run *.txt", "~/run", "cd x; run", "a\nb"]
)
def test_a_string_that_needs_a_shell_gets_one(start: str) -> None:
    assert command_line(start) == ["/bin/sh", "-c", start, "sh", ""]


@pytest.mark.parametrize(
    ("start", "printed"),
    [
        ("printf %s {prompt} && true", "{}"),
        ("printf %s '<{prompt}>' && true", "<{}>"),
        ('printf %s "<{prompt}>" && true', "<{}>"),
        ("printf %s \\'{prompt}\\' && true", "'{}'"),
        ("printf %s {prompt}1 && true", "{}1"),
        ('printf %s "it\'s {prompt}" && true', "it's {}"),
        ("printf %s 'a \"{prompt}\" b' && true", 'a "{}" b'),
        ('printf %s "a \\" {prompt}" && true', 'a " {}'),
    ],
)
def test_a_shell_never_reads_an_input_as_a_script(start: str, printed: str) -> None:
    ran = subprocess.run(command_line(start, prompt=NASTY), capture_output=True, check=True)
    assert ran.stdout.decode() == printed.replace("{}", NASTY)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_input_passes_a_shell_unchanged(prompt: str) -> None:
    ran = subprocess.run(command_line("printf %s {prompt} | cat", prompt=prompt), capture_output=True, check=True)
    assert ran.stdout.decode() == prompt


def test_where_the_input_goes() -> None:
    assert takes_prompt("run {prompt}")
    assert takes_prompt(["run", "--text={prompt}"])
    assert not takes_prompt(["run"])


@pytest.mark.parametrize("start", ["", "  ", [], [""], "run 'x"])
def test_nothing_to_start_is_refused(start: str | list[str]) -> None:
    with pytest.raises(ConfigError, match=r"agent\.start"):
        command_line(start)
