import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from flakestorm.cli.main import COMMANDS, cli
from flakestorm.errors import AgentUnreachable, ConfigError
from unit_cli import run


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_overview_is_the_commands_own(name) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(f"flakestorm.cli.{module}"), attribute)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_help_lists_every_command(capsys) -> None:
    assert run("--help") == 0
    shown = capsys.readouterr().out
    for name, (_, text) in COMMANDS.items():
        assert name in shown
        assert text.split(".")[0] in " ".join(shown.split())


def test_help_imports_no_command_and_nothing_heavy() -> None:
    script = (
        "import sys\nfrom flakestorm.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'aiohttp', 'rich', 'jinja2', 'yaml', 'asyncio'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize(("path", "command"), [pytest.param(*found, id=" ".join(found[0])) for found in commands(cli)])
def test_global_options_may_follow_every_command(path: tuple[str, ...], command: click.Command) -> None:
    assert {param.name for param in cli.params if param.name != "version"} <= {param.name for param in command.params}


def test_version(capsys) -> None:
    from flakestorm import __version__

    assert run("--version") == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ConfigError("wrong", file="f.yaml", line=3), 2, "f.yaml:3: wrong"),
        (AgentUnreachable("nobody there"), 3, "nobody there"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "y" * 5000), 2, "no file names that long"),
        (RuntimeError("a bug"), 3, "internal error: RuntimeError: a bug"),
    ],
)
def test_every_outcome_has_its_exit_code(monkeypatch, capsys, error, code, words) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.delenv("FLAKESTORM_DEBUG", raising=False)
    monkeypatch.setattr(cli, "main", fail)
    assert run("profiles") == code
    assert words in capsys.readouterr().err


def test_errors_obey_no_escape_sequence(monkeypatch, capsys) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AgentUnreachable("its last lines:\n    \x1b[2Jgone")

    monkeypatch.setattr(cli, "main", fail)
    assert run("profiles") == 3
    assert capsys.readouterr().err == "error: its last lines:\n    \\x1b[2Jgone\n"


def test_wrong_usage_is_2_with_the_nearest_command(capsys) -> None:
    assert run("verfy") == 2
    assert "verify" in capsys.readouterr().err
    assert run("chaos", "--concurrency", "0") == 2


def test_an_interruption_that_python_drops_is_obeyed() -> None:
    """As where it comes in the callback that every import ends with."""
    code = """
import signal, sys
from flakestorm.cli import main

class Finalised:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def run(args):
    Finalised()
    print("went on")
    return 0

main._run = run
sys.argv = ["flakestorm"]
main.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_threads_that_nobody_waits_for_do_not_spoil_the_exit_code() -> None:
    script = """
import atexit, sys, threading
from flakestorm.cli import main as cli

class Fake:
    @staticmethod
    def main(**_):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        atexit.register(print, "what is done at the end was done")
        print("said", end="")
        return 130

cli.cli = Fake
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, "saidwhat is done at the end was done\n")
    assert done.stderr == ""


ENDING = """
import atexit, sys
from pathlib import Path
from flakestorm.cli import main as cli
from flakestorm.core.loading import load_object

class Fake:
    @staticmethod
    def main(**_):
        atexit.register(print, "what is done at the end was done")
        print("said", end="")
        {body}
        return 1

kept = open("kept.txt", "w")
kept.write("closed by the interpreter")
cli.cli = Fake
{before}
cli.main()
"""
THEIRS = "load_object('theirs:log', folder=Path('.'), key='agent.endpoint').write('not written yet')"


@pytest.mark.parametrize(
    ("before", "body", "taken_apart"),
    [
        ("", "", False),
        ("sys.path.insert(0, '.')", THEIRS, True),
        ("import importlib.metadata", "", True),
    ],
)
def test_the_interpreter_is_taken_apart_only_where_somebody_may_need_it(tmp_path, before, body, taken_apart) -> None:
    """An agent's module may hold a file that is written when it is closed."""
    (tmp_path / "theirs.py").write_text("log = open('log.txt', 'w')\n")
    script = ENDING.format(before=before, body=body or "pass")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "said" in done.stdout
    assert "what is done at the end was done" in done.stdout
    assert (tmp_path / "kept.txt").read_text() == ("closed by the interpreter" if taken_apart else "")
    if body == THEIRS:
        assert (tmp_path / "log.txt").read_text() == "not written yet"


@pytest.mark.parametrize(
    ("under", "may"),
    [
        ("pass", True),
        ("sys.setprofile(lambda *_: None)", False),
        ("sys.settrace(lambda *_: None)", False),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", True),
        ("threading.Thread(target=end.wait).start()", False),
    ],
)
def test_it_is_taken_apart_for_profilers_and_for_threads_that_are_waited_for(under: str, may: bool) -> None:
    script = (
        "import sys, threading\nfrom flakestorm.cli import main as cli\n"
        f"end = threading.Event()\n{under}\nprint(cli._may_leave())\nend.set()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{may}\n"


def test_what_cannot_be_written_is_still_said() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full on this system")
    script = (
        "import sys, io\nfrom flakestorm.cli import main as cli\n"
        "class Fake:\n    @staticmethod\n    def main(**_):\n        print('said')\n        return 0\n"
        "cli.cli = Fake\ncli.main()"
    )
    with full.open("w") as out:
        done = subprocess.run(
            [sys.executable, "-c", script],
            stdout=out,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
    assert done.returncode == 2
    assert b"standard output cannot be written: No space left" in done.stderr


def test_the_collector_is_as_it_was_for_those_who_call_it() -> None:
    script = """
import gc, sys
before = gc.get_threshold()
from flakestorm.cli import main as cli
during = []

class Fake:
    @staticmethod
    def main(**_):
        during.append(gc.get_threshold())
        return 0

cli.cli = Fake
try:
    cli.main(["profiles"])
except SystemExit:
    pass
assert gc.get_threshold() == before
assert during == [cli.GC_THRESHOLDS] and during[0] != before
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("args", "frozen"), [("None", True), ("['profiles']", False)])
def test_what_a_command_imported_is_out_of_the_collectors_sight_where_the_process_is_its_own(
    args: str, frozen: bool
) -> None:
    script = f"""
import gc, sys
from flakestorm.cli import main as cli
sys.argv = ["flakestorm", "profiles"]
run = cli._run
def counted(args):
    code = run(args)
    print(gc.get_freeze_count() > 10_000, gc.get_freeze_count() == 0, file=sys.stderr)
    return code
cli._run = counted
cli.main({args})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, f"{frozen} {not frozen}\n")
