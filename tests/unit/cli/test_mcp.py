import subprocess
import sys
from pathlib import Path

import flakestorm
from mcp_support import PLAIN


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    source = str(Path(flakestorm.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {source!r}); from flakestorm.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, "mcp", *arguments], input=stdin, capture_output=True, check=False
    )


def test_outside_a_run_the_server_runs_as_if_nothing_were_there() -> None:
    done = run("--", sys.executable, "-I", str(PLAIN), stdin=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b'{"jsonrpc": "2.0", "id": 1, "result": {"method": "ping"}}\n'


def test_options_after_the_command_are_the_servers() -> None:
    done = run("--name", "w", sys.executable, "-c", "import sys; print(sys.argv[1:])", "--gateway", "x", "-q")
    assert done.stdout == b"['--gateway', 'x', '-q']\n"


def test_a_gateway_that_is_not_there_is_an_error() -> None:
    done = run("--gateway", "http://127.0.0.1:1/r/T", "--", "true")
    assert done.returncode == 3
    assert b"cannot be reached" in done.stderr


def test_without_a_command_it_says_what_is_missing() -> None:
    done = run()
    assert done.returncode == 2
    assert b"COMMAND" in done.stderr
