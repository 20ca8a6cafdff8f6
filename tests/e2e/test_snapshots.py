"""`agent.snapshot` and `agent.restore`: a fork finds the world as it was when the recorded run came to its site."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import flakestorm as product
from e2e_support import Done, flakestorm, write_config
from flakestorm.core.site import Site
from flakestorm.errors import WorldFailed
from upstream import Canned, Request, Upstream, document

AGENT = """
import json, os, sys, urllib.request
def book(seats):
    request = urllib.request.Request(os.environ["UP"] + "/book", json.dumps({"seats": seats}).encode())
    request.add_header("content-type", "application/json")
    return json.loads(urllib.request.urlopen(request).read())["left"]
print(book(1), book(2), book(4))
"""
HOOKS = """
import os, shutil, sys
from pathlib import Path
HERE = Path(__file__).parent
def kept(site, tape):
    return HERE / (Path(tape).name + site.replace("/", "-").replace("#", "-"))
def save(site, tape):
    shutil.copy(HERE / "seats.json", kept(site, tape))
async def restore(site, tape):
    shutil.copy(kept(site, tape), HERE / "seats.json")
def broken(site, tape):
    raise OSError("the disk is full")
if __name__ == "__main__":
    if sys.argv[1] == "save":
        save(os.environ["FLAKESTORM_SITE"], os.environ["FLAKESTORM_TAPE"])
    else:
        shutil.copy(kept(os.environ["FLAKESTORM_SITE"], os.environ["FLAKESTORM_TAPE"]), HERE / "seats.json")
"""
FUNCTIONS = {"snapshot": "hooks:save", "restore": "hooks:restore"}
COMMANDS = {"snapshot": f"{sys.executable} hooks.py save", "restore": f"{sys.executable} hooks.py restore"}
SITE = "tool/book#2"


class Airline:
    """Sells seats; how many are left stands in a file, which no tape brings back."""

    def __init__(self, folder: Path, up: Upstream) -> None:
        self.folder, self.up, self.file = folder, up, folder / "seats.json"
        self.file.write_text("100")
        (folder / "agent.py").write_text(AGENT)
        (folder / "hooks.py").write_text(HOOKS)
        up.reply("/book", self.book)

    def book(self, request: Request) -> Canned:
        left = int(self.file.read_text()) - int(request.json()["seats"])
        self.file.write_text(str(left))
        return document({"left": left})

    def run(self, *words: str, **agent: object) -> Done:
        start = {"type": "command", "start": [sys.executable, "agent.py"], "endpoint": "unused"}
        write_config(
            self.folder,
            agent={**start, **agent},
            boundary={"tools": {"book": "*/book"}},
            golden_prompts=["three times"],
            invariants=[{"type": "completes"}],
        )
        return flakestorm(self.folder, *words, env={"UP": self.up.url})


@pytest.fixture
def airline(tmp_path: Path) -> Iterator[Airline]:
    with Upstream() as up:
        yield Airline(tmp_path, up)


@pytest.mark.parametrize(
    ("what", "hooks"),
    [(("--", sys.executable, "agent.py"), FUNCTIONS), (("--input", "three times"), COMMANDS)],
    ids=["program, functions", "agent, commands"],
)
def test_a_fork_finds_what_was_there_before_its_site(
    airline: Airline, what: tuple[str, ...], hooks: dict[str, str]
) -> None:
    done = airline.run("record", "-o", "a.tape", *what, **hooks)
    assert (done.code, done.out.strip()) == (0, "99 97 93"), done.err
    forked = airline.run("fork", "a.tape", "--at", SITE, "--resample", "-o", "b.tape", "--format", "json", **hooks)
    document = json.loads(forked.out)
    assert (document["environment"], document["output"].strip()) == ("snapshot", "99 97 93"), forked.err
    assert f"it was restored at {SITE}" in document["why"]
    again = airline.run("fork", "a.tape", "--at", SITE, "--resample", "-o", "c.tape", "--format", "json")
    assert json.loads(again.out)["environment"] == "unrestored"
    assert json.loads(again.out)["output"].strip() == "99 91 87"


def test_what_cannot_be_saved_or_put_back_is_said(airline: Airline) -> None:
    done = airline.run("record", "-o", "a.tape", "--input", "three times", snapshot="hooks:broken")
    assert (done.code, done.out.strip()) == (0, "99 97 93")
    assert "warning: no snapshot at tool/book#1, nor after it: the disk is full" in done.err
    for wrong in ("hooks:restore", "hooks:missing", "false", "no-such-program"):
        forked = airline.run("fork", "a.tape", "--at", SITE, "--resample", "-o", "b.tape", restore=wrong)
        assert forked.code in (2, 3), forked.err
        assert airline.file.read_text() == "93"  # nobody was called


def test_functions_from_python(airline: Airline, tmp_path: Path) -> None:
    import httpx

    seen: dict[Site, str] = {}

    def agent() -> str:
        with httpx.Client() as client:
            told = [client.post(f"{airline.up.url}/book", json={"seats": n}).json()["left"] for n in (1, 2)]
        return " ".join(map(str, told))

    def save(site: Site) -> None:
        seen[site] = airline.file.read_text()

    def put_back(site: Site) -> None:
        airline.file.write_text(seen[site])

    with product.record(tmp_path / "a.tape", tools={"book": "*/book"}, snapshot=save) as tape:
        tape.output = agent()
    assert {str(site): left for site, left in seen.items()} == {"tool/book#1": "100", SITE: "99"}
    forked = product.fork(
        tmp_path / "a.tape", agent, at=SITE, to=tmp_path / "b.tape", names={"book": "*/book"}, restore=put_back
    )
    assert (forked.environment, forked.output) == ("snapshot", "99 97")

    def cannot(_: Site) -> None:
        raise OSError("the disk is full")

    with (
        pytest.raises(WorldFailed, match="no snapshot at tool/book#1"),
        product.record(tmp_path / "c.tape", tools={"book": "*/book"}, snapshot=cannot),
    ):
        agent()
