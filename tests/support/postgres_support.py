"""A Postgres server of the tests' own: made in a temporary folder, reached through a socket there, gone afterwards."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY_ELSE = "postgres"
"""The user that the server runs as where the tests run as root, which it refuses."""

MISSING = "there is no Postgres server here (initdb and pg_ctl, e.g. from the package postgresql)"


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; None where there is none."""
    found = shutil.which("initdb")
    homes = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((home for home in homes if (home / "initdb").exists() and (home / "pg_ctl").exists()), None)


@contextmanager
def postgres() -> Iterator[str]:
    """A running server; gives the address of its database."""
    home = programs()
    assert home is not None, MISSING
    folder = Path(tempfile.mkdtemp(prefix="flakestorm-pg-", dir="/tmp"))  # a socket's path must be short
    user = NOBODY_ELSE if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"

    def run(*words: str) -> None:
        subprocess.run(
            words, check=True, user=user, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60
        )

    settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections=30"
    run(str(home / "initdb"), "-D", str(data), "-A", "trust", "-U", "tester", "-N", "-E", "UTF8", "--locale=C.UTF-8")
    run(str(home / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", settings, "start")
    try:
        yield f"postgresql://tester@/postgres?host={folder}"
    finally:
        run(str(home / "pg_ctl"), "-D", str(data), "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def emptied(address: str) -> str:
    """The same database, without what was saved in it."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS flakestorm CASCADE")
    return address
