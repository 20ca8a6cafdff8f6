from pathlib import Path
from typing import Any

import pytest

from flakestorm.api.trusting import Wanted, always, demand, demand_of_report
from flakestorm.config.model import Config
from flakestorm.errors import Misuse
from flakestorm.tape.origin import VARIABLE, Named
from flakestorm.tape.reader import Tape
from tape_support import Run


def tape(path: Path, command: dict[str, Any] | None, *, sealed: bool = False) -> Tape:
    run = Run(path, header={} if command is None else {"command": command})
    run.recorder.close()
    if not sealed:
        path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    return Tape.open(path)


@pytest.fixture(autouse=True)
def _user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def config_of(folder: Path, **agent: Any) -> Config:
    said = {"version": "2.0", "agent": {"type": "command", **agent}, "golden_prompts": ["x"]}
    return Config.of(said).at(folder)


def test_what_is_sealed_is_run_without_a_question(tmp_path: Path) -> None:
    def ask(wanted: Wanted) -> bool:
        raise AssertionError(wanted)

    demand(tape(tmp_path / "a.tape", {"argv": ["x"], "cwd": "/"}, sealed=True), approve=ask)
    demand(tape(tmp_path / "b.tape", {"config": "/x.yaml"}, sealed=True), approve=ask)


def test_what_is_not_is_asked_about_and_refused_in_words(tmp_path: Path) -> None:
    asked: list[Wanted] = []
    named = Named(("sh", "-c", "\x1b[2Jrm x"), "/w")
    found = tape(tmp_path / "a.tape", {"argv": list(named.argv), "cwd": "/w"})
    with pytest.raises(Misuse) as refused:
        demand(found, approve=lambda wanted: bool(asked.append(wanted)))
    said = str(refused.value)
    assert asked == [Wanted(found.path, "it carries no seal", named)]
    assert r"sh -c '\x1b[2Jrm x' (in /w)" in said
    assert all(way in said for way in ("-- COMMAND", "--trust-tape", VARIABLE, "Nothing was run"))
    demand(found, approve=always)


def test_a_program_is_told_what_to_pass(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="trust_tape=True"):
        demand(tape(tmp_path / "a.tape", {"argv": ["x"]}))


def test_what_the_user_gives_is_not_asked_about(tmp_path: Path) -> None:
    demand(tape(tmp_path / "a.tape", {"argv": ["x"]}), argv=["y"])
    demand(tape(tmp_path / "b.tape", {"config": "/x.yaml"}), config=config_of(tmp_path, start="y"))
    demand(tape(tmp_path / "c.tape", None))
    with pytest.raises(Misuse, match="or -c CONFIG"):
        demand(tape(tmp_path / "b.tape", {"config": "/x.yaml"}), approve=lambda _: False)


def test_a_command_that_one_s_own_config_starts_is_not_asked_about(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    found = tape(tmp_path / "a.tape", {"argv": ["python", "a b.py"], "cwd": f"{tmp_path}/sub/.."})
    demand(found, config=config_of(tmp_path, start="python 'a b.py'"))
    demand(found, config=config_of(tmp_path / "sub", start=["python", "a b.py"], cwd=".."))


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        ({"start": "python b.py"}, {}),
        ({"start": "python a.py", "cwd": "sub"}, {}),
        ({"start": "python a.py -x"}, {}),
        ({"start": "python a.py"}, {"cwd": "/"}),
        ({"start": "python a.py"}, {"cwd": "\0"}),
        ({"start": "python {prompt}"}, {}),
        ({"type": "python", "endpoint": "a:b"}, {}),
    ],
    ids=["other", "folder", "more", "cwd", "nul", "prompt", "no start"],
)
def test_another_one_is(tmp_path: Path, agent: dict[str, Any], command: dict[str, Any]) -> None:
    found = tape(tmp_path / "a.tape", {"argv": ["python", "a.py"], "cwd": str(tmp_path), **command})
    with pytest.raises(Misuse):
        demand(found, config=config_of(tmp_path, **agent))


def test_a_message_holds_no_more_than_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(Misuse) as refused:
        demand(tape(tmp_path / "a.tape", {"argv": ["x" * 100_000]}))
    assert len(str(refused.value)) < 2000
    assert "characters)" in str(refused.value)


def test_a_report_in_a_file_vouches_for_no_config(tmp_path: Path) -> None:
    demand_of_report(tmp_path / "r.json", "/x.yaml", approve=always)
    with pytest.raises(Misuse, match=r"r\.json .*the agent of /x\.yaml.*-c CONFIG"):
        demand_of_report(tmp_path / "r.json", "/x.yaml", approve=lambda _: False)
