import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from compare_support import comparison_of, pair_of
from flakestorm.core.site import Site
from flakestorm.errors import FlakestormError
from flakestorm.reports import comparison
from flakestorm.reports.document import to_document
from flakestorm.store.sqlite import Store
from flakestorm.viewer.orders import BODY_BYTES, CHILD, REPLY, SESSION, Order, Wish, modes_for, order, refused
from flakestorm.viewer.shelf import Shelf
from report_samples import HOSTILE, hostile, sample
from viewer_support import recorded, saved_with_tapes

INTO = Path("/store/work/fork-1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "flakestorm.yaml").write_text("")
    return tmp_path / ".flakestorm"


@pytest.fixture
def id_(project: Path, tmp_path: Path) -> str:
    return saved_with_tapes(project, tmp_path / "t", sample())


@pytest.fixture
def shelf(project: Path, id_: str) -> Shelf:
    return Shelf(project)


def ask(shelf: Shelf, of: str, **more: object) -> Order:
    return order(shelf, Wish.of_mapping({"kind": "fork", "of": of, **more}), INTO)


def test_a_fork_is_the_command_one_would_type(shelf: Shelf, id_: str, tmp_path: Path) -> None:
    found = ask(shelf, f"{id_}/r-0001", at=1, value="error:503")
    tape = shelf.recording(f"{id_}/r-0001").path
    assert found.words == (
        *("fork", "-c", str(tmp_path / "flakestorm.yaml"), "--at=tool/search#1", "--fault=error:503"),
        *("--tools", "live", "-o", str(INTO / CHILD), "--format", "json", "--", str(tape)),
    )
    assert (found.kind, found.cwd, found.body) == ("fork", tmp_path, None)
    assert shlex.split(found.line) == ["flakestorm", *found.words]
    said = " ".join(found.says)
    assert "The agent that flakestorm.yaml describes is started" in said
    assert "1 call before tool/search#1 is answered by the tape; there: the fault error:503." in said
    assert "really called" in said


@pytest.mark.parametrize(
    ("more", "option"),
    [
        ({"change": "resample"}, "--resample"),
        ({"change": "model", "value": "gpt-4o-mini", "at": 0}, "--model=gpt-4o-mini"),
        ({"change": "model", "value": "--help; $(touch x)", "at": 0}, "--model=--help; $(touch x)"),
        ({"change": "set", "value": "{}"}, f"--set={INTO / REPLY}"),
    ],
)
def test_each_change_is_one_word(shelf: Shelf, id_: str, more: dict, option: str) -> None:
    found = ask(shelf, f"{id_}/r-0001", **{"at": 1, "tools": "tape", **more})
    assert found.words[4] == option
    assert found.body == (b"{}" if more["change"] == "set" else None)
    assert "tools are answered by the tape" in " ".join(found.says)


def test_what_an_agent_said_is_one_word_too(project: Path, tmp_path: Path) -> None:
    report = replace(hostile(), config="flakestorm.yaml")
    id_ = saved_with_tapes(project, tmp_path / "t", report, name=HOSTILE)
    found = ask(Shelf(project), f"{id_}/r-0001", at=1, change="resample")
    assert found.words[3].startswith("--at=tool/</script><script>")
    assert (
        Site.parse(found.words[3].removeprefix("--at=")) == Shelf(project).recording(f"{id_}/r-0001").exchange(1).site
    )
    assert (len(found.words), found.words[-2]) == (13, "--")
    assert "\x1b" not in found.line
    assert "\x1b" not in found.title


def test_a_shrink_is_of_a_run_that_failed(shelf: Shelf, id_: str) -> None:
    found = ask(shelf, f"{id_}/r-0005", kind="shrink", budget="40")
    assert found.words[:2] == ("shrink", "-c")
    assert found.words[3:] == (
        *("--budget", "40", "-o", str(INTO / SESSION), "--format", "json", "--", f"{id_}#r-0005"),
    )  # fmt: skip
    assert found.runs == 40
    assert "up to 40 times" in found.says[0]
    for of, budget, words in ((f"{id_}/r-0001", 40, "only a run that failed"), (f"{id_}/x", 40, "has no run 'x'"),
                              (f"{id_}/r-0005", 1, "2 to 5000")):  # fmt: skip
        with pytest.raises(FlakestormError, match=words):
            ask(shelf, of, kind="shrink", budget=budget)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kind": "run"}, "a page can start 'fork' and 'shrink'"),
        ({"at": 9, "value": "error"}, "there is no exchange 9"),
        ({"at": 1, "value": "  "}, "say which fault"),
        ({"at": 1, "value": "no_such_mode"}, "no_such_mode"),
        ({"at": 1, "value": "error@result"}, "leave @result out"),
        ({"at": 1, "value": "error\0"}, "say which fault"),
        ({"at": 1, "change": "model", "value": "m"}, "no model call"),
        ({"at": 0, "change": "model", "value": "\ud800"}, "cannot stand on a command line"),
        ({"at": 1, "change": "else", "value": "m"}, "a change is"),
        ({"at": 1, "tools": "none", "value": "error"}, "tools are"),
        ({"at": 1, "change": "set", "value": "x" * (BODY_BYTES + 1)}, "larger than 8 MB"),
    ],
)
def test_what_cannot_be_done_is_said(shelf: Shelf, id_: str, more: dict, words: str) -> None:
    with pytest.raises(FlakestormError, match=words):
        ask(shelf, f"{id_}/r-0001", **more)


def test_a_wish_is_texts_and_numbers() -> None:
    assert Wish.of_mapping({"kind": "fork", "of": "a/b", "at": ""}) == Wish("fork", "a/b")
    for said in ({"kind": ["fork"]}, {"at": "many"}):
        with pytest.raises(ValueError):
            Wish.of_mapping(said)


def test_only_the_projects_own_config_is_used(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "evil.yaml").write_text("")
    (tmp_path / "link.yaml").symlink_to(other / "evil.yaml")
    shelf = Shelf(project)
    for config, fine in (
        ("flakestorm.yaml", True), ("sub/../flakestorm.yaml", True), (str(other / "flakestorm.yaml"), True),
        (str(other / "evil.yaml"), False), ("link.yaml", False), ("", False), (".", False), ("..", False),
    ):  # fmt: skip
        id_ = saved_with_tapes(project, tmp_path / "t", replace(sample(), config=config))
        assert (refused(shelf, f"{id_}/r-0001") == "") is fine, config
        if fine:
            assert ask(shelf, f"{id_}/r-0001", at=1, change="resample").words[2] == str(tmp_path / "flakestorm.yaml")
    with Store(project, write=True) as store:
        compared = store.save(comparison.to_document(comparison_of([pair_of([True], [False], trial=1)])))
    assert "of two versions" in refused(shelf, f"{compared}/x")
    assert "no report" in refused(shelf, "none/x")


def test_a_tape_that_names_a_command_is_not_run(project: Path, tmp_path: Path) -> None:
    with Store(project, write=True) as store:
        store.save(to_document(sample()))
    config = {"config": str(tmp_path / "flakestorm.yaml")}
    for name, command, words in (
        ("fine", config, ""),
        ("argv", {**config, "argv": ["rm", "-r", "x"]}, "names a command of its own"),
        ("foreign", {"config": "/elsewhere/flakestorm.yaml"}, "not the config beside"),
        ("none", None, "not known which config"),
    ):
        recorded(project / "tapes" / f"{name}.tape", header={} if command is None else {"command": command})
        assert words in refused(Shelf(project), f"tape:tapes/{name}.tape"), name
        assert bool(words) is bool(refused(Shelf(project), f"tape:tapes/{name}.tape")), name


def test_the_modes_that_are_offered_fit_the_call() -> None:
    assert "rate_limit" in modes_for("llm")
    assert "error" in modes_for("tool")
    assert ("session_lost" in modes_for("mcp"), "session_lost" in modes_for("tool")) == (True, False)
