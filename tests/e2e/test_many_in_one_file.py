"""Files that hold several things, given to commands that are about one of them."""

from pathlib import Path

import pytest

from e2e_support import flakestorm, write_config

RULE = {"id": "has", "type": "contains", "value": "nowhere in it"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose three prompts all fail, and its report."""
    contract = {"name": "c", "invariants": [RULE], "chaos_matrix": [{"name": "calm"}]}
    write_config(
        tmp_path, agent={"type": "command", "start": "cat"}, golden_prompts=["one", "two", "three"], contract=contract
    )
    assert flakestorm(tmp_path, "contract", "run", "-q", "-o", "r.json").code == 1
    (tmp_path / "two.yaml").write_text(
        "sessions:\n- {id: a, input: four, contract: c}\n- {id: b, input: five, contract: c}\n"
    )
    return tmp_path


def test_shrink_says_which_of_several_failing_runs_it_took(folder: Path) -> None:
    for named in ("r.json", "latest"):
        done = flakestorm(folder, "shrink", named)
        assert done.code == 1
        assert done.err.splitlines()[0] == (
            f"3 runs of {named} failed; this is r-0001. Say which for another: {named}#r-0002 (r-0002, r-0003)"
        )
        assert "--prompt 0" in done.out.splitlines()[-1]
        assert flakestorm(folder, "contract", "run", "-q", "-o", "r.json").code == 1  # the latest again
    done = flakestorm(folder, "shrink", "r.json#r-0003")
    assert "this is" not in done.err
    assert "--prompt 2" in done.out.splitlines()[-1]


def test_shrink_takes_a_session_of_a_file_with_several_by_its_id(folder: Path) -> None:
    done = flakestorm(folder, "shrink", "two.yaml")
    assert (done.code, done.err) == (2, "error: two.yaml holds 2 sessions (a, b); say which: two.yaml#a\n")
    assert "--input five" in flakestorm(folder, "shrink", "two.yaml#b").out.splitlines()[-1]
    assert "there is no session 'c' in it; there are a, b" in flakestorm(folder, "shrink", "two.yaml#c").err
    (folder / "one.json").write_text('[{"id": "a", "input": "six", "contract": "c"}]')
    assert "--input six" in flakestorm(folder, "shrink", "one.json").out.splitlines()[-1]
    (folder / "plain.yaml").write_text("{id: a, input: seven, contract: c}")
    assert "there is no session 'b' in it; there is a" in flakestorm(folder, "shrink", "plain.yaml#b").err
    (folder / "none.yaml").write_text("sessions: []")
    assert "none.yaml holds no session" in flakestorm(folder, "shrink", "none.yaml").err


def test_blame_takes_none_of_several_failing_runs(folder: Path) -> None:
    done = flakestorm(folder, "blame", "r.json")
    assert done.code == 2
    assert "3 runs of the report fail (r-0001, r-0002, r-0003); say which: FILE#RUN" in done.err


@pytest.mark.parametrize(
    "args",
    [
        ("fork", "r.json", "--at", "tool/x#1", "--resample", "-o", "c.tape"),
        ("verify-tape", "r.json"),
        ("diff", "r.json", "r.json"),
        ("tapes", "show", "r.json"),
        ("run", "--tape", "r.json"),
    ],
)
def test_a_report_where_a_tape_belongs_is_called_one(folder: Path, args: tuple[str, ...]) -> None:
    done = flakestorm(folder, *args)
    assert done.code == 2
    assert "r.json is not a tape: it is a report, and each of its runs has a tape of its own" in done.err


def test_a_report_where_a_session_belongs_says_how_to_make_sessions(folder: Path) -> None:
    done = flakestorm(folder, "replay", "run", "r.json")
    assert done.code == 2
    assert "`flakestorm replay export --from-report r.json` makes sessions of its failing runs" in done.err
    assert flakestorm(folder, "replay", "export", "--from-report", "r.json", "-o", "s").code == 0
    assert flakestorm(folder, "replay", "run", "s").code == 1
