"""Tapes that go from one machine to another: what `docs/how-to/ci.md` says of them is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from e2e_support import Done, flakestorm
from pages_support import DOCS
from upstream import Upstream, document

AGENT = """
import os, sys, urllib.request as r
print(sys.argv[1], r.urlopen(os.environ["SEARCH_URL"]).read())
"""
KEY = {"FLAKESTORM_TRUST_KEY": "0123456789abcdef" * 4}


@pytest.mark.parametrize("shared", [False, True])
def test_a_build_is_given_the_command_or_the_key(tmp_path: Path, shared: bool) -> None:
    page = (DOCS / "how-to" / "ci.md").read_text("utf-8")
    (line,) = re.findall(r"```sh\nflakestorm (.*)\n```", page)
    verify, tape, _, *command = shlex.split(line)
    (tmp_path / "agent.py").write_text(AGENT)

    with Upstream() as up:
        up.reply("/search", document({"flights": 3}))

        def at(machine: str, *words: str, env: dict[str, str]) -> Done:
            state = {"XDG_STATE_HOME": str(tmp_path / machine), "SEARCH_URL": f"{up.url}/search"}
            return flakestorm(tmp_path, *words, env={**state, **env})

        done = at("developer", "record", "-o", tape, "--", *command, env=KEY if shared else {})
        assert (done.code, "not sealed" in done.err) == (0, False), done.err
        assert at("developer", verify, tape, env=KEY if shared else {}).code == 0
        done = at("build", verify, tape, env=KEY)
        assert done.code == (0 if shared else 2), done.err
        assert ("python agent.py 'a flight to Oslo'" in done.err) != shared
        assert at("build", verify, tape, "--", *command, env={}).code == 0
        assert up.count() == 1
