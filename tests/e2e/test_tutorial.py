"""The tutorial, followed from its first page to its last: every command runs and says what the page shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from e2e_support import clean_env
from flakestorm.demo.run import serve
from pages_support import DOCS, Reader

PAGES = sorted((DOCS / "tutorial").glob("[1-9]-*.md"))
GIT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


def test_its_pages_follow_one_another() -> None:
    names = [page.name for page in PAGES]
    index = (DOCS / "tutorial" / "index.md").read_text("utf-8")
    assert len(names) == 8
    assert [name for name in names if f"({name})" in index] == names
    for page, following in zip(PAGES, names[1:], strict=False):
        assert f"({following})" in page.read_text("utf-8").rpartition("Next: ")[2]


def test_it_can_be_followed(tmp_path: Path) -> None:
    with serve() as world:
        shell = {
            **GIT,
            "SHELL": "/bin/sh",
            "OPENAI_BASE_URL": world["FLAKESTORM_DEMO_MODEL_URL"],
            "OPENAI_API_KEY": world["FLAKESTORM_DEMO_API_KEY"],
            "FLAKESTORM_DEMO_TOOLS_URL": world["FLAKESTORM_DEMO_TOOLS_URL"],
        }
        reader = Reader(tmp_path, shell)
        for page in PAGES:
            reader.follow(page)


def test_the_world_is_there_for_a_command_and_its_exit_code_is_passed_on(tmp_path: Path) -> None:
    ask = "import os, urllib.request as r; print(r.urlopen(os.environ['{}'] + '{}').read()[:20])"
    code = f"{ask.format('OPENAI_BASE_URL', '/models')}\n{ask.format('FLAKESTORM_DEMO_TOOLS_URL', '/counts')}\nexit(7)"
    words = [sys.executable, "-m", "flakestorm.demo"]
    done = subprocess.run(
        [*words, sys.executable, "-c", code], env=clean_env(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()) == (7, ['b\'{"object": "list", "\'', "b'{\"bookings\": 0}'"])

    (tmp_path / "agent.py").write_text("mine")
    for arguments, said in (["--agent", "agent.py"], "exists already"), (["no-such-command"], "cannot be run"):
        done = subprocess.run(
            [*words, *arguments], cwd=tmp_path, env=clean_env(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert said in done.stderr
    assert (tmp_path / "agent.py").read_text() == "mine"
