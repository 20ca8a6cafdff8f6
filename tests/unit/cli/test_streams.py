import os
import subprocess
import sys
from pathlib import Path

import pytest

STAND = "import os, sys; from flakestorm.cli.streams import stand; stand(); "


def python(code: str, redirected: str = "") -> subprocess.CompletedProcess[str]:
    words = ["sh", "-c", f'exec "$0" -c "$1" {redirected}', sys.executable, code]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def test_closed_streams_keep_their_numbers() -> None:
    number = "print(os.open(os.devnull, os.O_RDONLY), file=sys.stderr)"
    assert int(python(STAND + number, "<&- >&-").stderr) > 2


def test_what_a_reader_that_left_did_not_want_is_thrown_away() -> None:
    code = STAND + "[print('x' * 100_000, flush=True) for _ in range(20)]; print('done', file=sys.stderr)"
    done = subprocess.run(
        ["sh", "-c", '{ "$0" -c "$1"; echo "code $?" >&2; } | true', sys.executable, code],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == "done\ncode 0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told_once() -> None:
    code = STAND + (
        "from flakestorm.errors import Misuse\n"
        "try: print('x', flush=True)\n"
        "except Misuse as error: print(error, file=sys.stderr)\n"
        "print('y', flush=True)"
    )
    done = python(code, ">/dev/full")
    assert done.returncode == 0
    assert done.stderr.startswith("standard output cannot be written: No space left on device")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_everything_else_is_as_it_was(tmp_path: Path, unbuffered: str) -> None:
    code = STAND + "print('ü'); sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush(); print('end')"
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=60, check=False)
    assert done.stdout in (b"\xfc\n\xff\nend\n", b"\xff\n\xfc\nend\n")


def test_standard_input_is_taken_up_to_a_limit_and_one_byte() -> None:
    code = "from flakestorm.cli.streams import given; print(len(given(LIMIT)))"
    for limit, taken in ((100, 11), (11, 11), (5, 6)):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("LIMIT", str(limit))], input="hello there", capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout == f"{taken}\n", done.stderr


def test_standard_input_that_cannot_be_read_is_told() -> None:
    code = (
        "from flakestorm.cli.streams import given; from flakestorm.errors import Misuse\n"
        "try: given(5)\nexcept Misuse as error: print(error)"
    )
    assert python(code, "<&-").stdout == "standard input cannot be read: Bad file descriptor\n"
