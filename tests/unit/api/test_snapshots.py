from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flakestorm.api.snapshots import Snapshots, command_hook, restoring, snapshots_of
from flakestorm.config import load
from flakestorm.config.model import Config
from flakestorm.core.call import Call
from flakestorm.core.site import Site
from flakestorm.errors import Misuse, WorldFailed

SITE = Site("tool", "search", 1)
CALL = Call("POST", "https://x.test/search", kind="tool", name="search", site=SITE)
HOOKS = """
seen = []
def save(site, tape):
    seen.append((site, tape))
    if site.endswith("#2"):
        raise OSError("full")
async def put_back(site, tape):
    with open(tape + ".put", "w") as file:
        file.write(site)
number = 3
"""


def config(folder: Path, **agent: str) -> Config:
    (folder / "hooks.py").write_text(HOOKS)
    lines = "".join(f"  {key}: {value!r}\n" for key, value in agent.items())
    (folder / "flakestorm.yaml").write_text(
        f"version: '2.0'\nagent:\n  endpoint: http://x.test/\n{lines}golden_prompts: [hi]\n"
        "invariants: [{type: completes}]\n"
    )
    return load(folder / "flakestorm.yaml")


def test_a_command_finds_site_and_tape_and_its_exit_code_is_believed(tmp_path: Path) -> None:
    script = tmp_path / "save.py"
    script.write_text(
        "import os; open('found', 'w').write(os.environ['FLAKESTORM_SITE'] + ' ' + os.environ['FLAKESTORM_TAPE'])"
    )
    command_hook(f"{sys.executable} {script}", Path("a.tape"), key="--restore", cwd=tmp_path)(SITE)
    assert (tmp_path / "found").read_text() == f"tool/search#1 {Path('a.tape').absolute()}"
    with pytest.raises(WorldFailed, match="--restore 'false' exited with code 1"):
        command_hook("false", Path("a.tape"), key="--restore")(SITE)
    with pytest.raises(WorldFailed, match="'no-such-program' cannot be started"):
        command_hook("no-such-program", Path("a.tape"), key="--restore")(SITE)
    for wrong in ("", "'"):
        with pytest.raises(Misuse, match="--restore"):
            command_hook(wrong, Path("a.tape"), key="--restore")


def test_snapshots_are_taken_until_one_fails_and_no_call_is_held_up(tmp_path: Path) -> None:
    saved: list[Site] = []

    def save(site: Site) -> None:
        saved.append(site)
        if site.occurrence == 2:
            raise OSError("full")

    snapshots = Snapshots(save)
    (stage,) = snapshots.stages
    for occurrence in (1, 2, 3):
        call = replace(CALL, site=Site("tool", "search", occurrence))
        assert stage(call) is call
    assert [site.occurrence for site in saved] == [1, 2]
    assert snapshots.failure == "no snapshot at tool/search#2, nor after it: full"
    assert Snapshots(None).stages == ()


def test_functions_of_the_config_get_site_and_tape(tmp_path: Path) -> None:
    said = config(tmp_path, snapshot="hooks:save", restore="hooks:put_back")
    snapshots = snapshots_of(said, tmp_path / "a.tape")
    (stage,) = snapshots.stages
    stage(CALL)
    assert snapshots.failure is None
    put_back = restoring(said, tmp_path / "a.tape")
    assert put_back is not None
    put_back(SITE)
    assert (tmp_path / "a.tape.put").read_text() == "tool/search#1"


def test_a_config_that_says_nothing_saves_nothing(tmp_path: Path) -> None:
    for said in (None, config(tmp_path)):
        assert snapshots_of(said, tmp_path / "a.tape").stages == ()
        assert restoring(said, tmp_path / "a.tape") is None
    wrong = restoring(config(tmp_path, restore="hooks:number"), tmp_path / "a.tape")
    assert wrong is not None
    with pytest.raises(WorldFailed, match="hooks:number is int, not a function"):
        wrong(SITE)
