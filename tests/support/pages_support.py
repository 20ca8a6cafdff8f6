"""Pages of the documentation, followed as a reader would: files are written, commands run, output is compared.

What a page means by its blocks:

- ```` ```console ````: each line with `$ ` is run, in the folder that earlier `cd` lines led to; what follows up to the
  next is its output. A line of `...` stands for any lines, and `...` within one for any text; with no output shown, any
  will do. The exit code is 0, unless the next command is `echo "exit code $?"`, which shows it.
- `<!-- file: NAME -->` before a block: the block is that file.
- `<!-- tail: NAME -->`: it takes the place of all that follows its own first line in that file, or is appended.
- `<!-- edit: NAME -->` before a ```` ```diff ```` block: its lines are changed so.

Durations, times of day, ports, keys' names and digests differ from run to run and are compared as if they did not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e_support import clean_env

__all__ = ["DOCS", "Reader", "commands", "steps"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOME = "/home/ada"
"""The folder that pages show for the one they were followed in."""

_BLOCK = re.compile(r"(?:<!-- (file|tail|edit): (\S+) -->\n+)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOISE = (
    (r"\b20\d{6}-\d{6}(-[0-9a-f]{4})?\b", "<report>"),
    (r"(^ +)?\b\d+(\.\d+)? (s|ms)\b", "<time>"),
    (r"\blane \d+(\.[a-z]+\d+)*", "lane <lane>"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
    (r"\bkey [0-9a-f]{16}\b", "key <key>"),
    (r"\b[0-9a-f]{64}\b", "<digest>"),
    (r"\b[0-9a-f]{12}\b", "<commit>"),
    (r" +$", ""),
)


@dataclass(frozen=True)
class Step:
    """One thing that a reader does: `what` is run, file, tail or edit."""

    line: int
    what: str
    name: str
    text: str
    shown: tuple[str, ...] = ()


def steps(page: str) -> Iterator[Step]:
    """What a reader of this text does, in order."""
    for found in _BLOCK.finditer(page):
        what, name, language, text = found.groups()
        line = page.count("\n", 0, found.start(3)) + 2
        if what:
            yield Step(line, what, name, text)
        elif language == "console":
            for part in re.split(r"^(?=\$ )", text, flags=re.MULTILINE):
                command, _, shown = re.sub(r"\\\n", "", part).partition("\n")
                if command:
                    yield Step(line, "run", "", command.removeprefix("$ "), tuple(shown.splitlines()))
                line += part.count("\n")


def commands(page: str) -> list[str]:
    """The commands that a text shows."""
    return [step.text for step in steps(page) if step.what == "run"]


@dataclass
class Reader:
    """Somebody who follows pages in a folder.

    Args:
        folder: where they begin.
        env: what their shell knows beside a clean environment.
        instead: commands that are run in another form.
    """

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home, self.code = self.folder, 0

    def follow(self, page: Path) -> None:
        """Do what the page says.

        Raises:
            AssertionError: something else came of it than it shows.
        """
        name = page.relative_to(DOCS)
        done = list(steps(page.read_text("utf-8")))
        for step, then in zip(done, [*done[1:], None], strict=True):
            place = f"docs/{name}:{step.line}"
            if step.what == "run":
                self._run(step, place, told=then is not None and "$?" in then.text)
            else:
                self._write(step, place)

    def _write(self, step: Step, place: str) -> None:
        file = self.folder / step.name
        if step.what == "file":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step.text, "utf-8")
            return
        before = file.read_text("utf-8")
        if step.what == "tail":
            kept = before.partition("\n" + step.text.partition("\n")[0] + "\n")[0]
            file.write_text(kept.rstrip("\n") + "\n\n" + step.text, "utf-8")
            return
        lines = [(line[:1], line[1:]) for line in step.text.splitlines()]
        old = "".join(f"{text}\n" for sign, text in lines if sign != "+")
        new = "".join(f"{text}\n" for sign, text in lines if sign != "-")
        assert before.count(old) == 1, f"{place}: the lines to be changed are not in {step.name}"
        file.write_text(before.replace(old, new), "utf-8")

    def _run(self, step: Step, place: str, *, told: bool) -> None:
        if step.text.startswith("cd "):
            self.folder = self.folder / step.text.removeprefix("cd ")
            return
        tools = str(Path(sys.executable).parent)
        env = {**self.env, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
        script = f"(exit {self.code}); {self.instead.get(step.text, step.text)}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=clean_env(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        said = done.stdout.replace(str(self.home), HOME)
        self.code = done.returncode
        assert told or self.code == 0, f"{place}: $ {step.text}\nexits with {self.code}:\n{said}"
        if step.shown:
            wanted = "\n".join(step.shown)
            assert re.fullmatch(_pattern(wanted), _quiet(said)), (
                f"{place}: $ {step.text}\nsays:\n{said}\nnot:\n{wanted}"
            )


def _quiet(text: str) -> str:
    for pattern, instead in _NOISE:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text.strip("\n") + "\n"


def _pattern(shown: str) -> str:
    """A regular expression of a shown output."""
    lines = _quiet(shown).splitlines()
    return "".join(r"(?:.*\n)*?" if line == "..." else _line(line) + r"\n" for line in lines)


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("..."))
