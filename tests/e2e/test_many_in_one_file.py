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


def test_a_saved_report_where_a_tape_belongs_says_which_tapes_it_has(folder: Path) -> None:
    done = flakestorm(folder, "tapes", "show", "latest")
    assert done.code == 2
    assert done.err == (
        "error: latest is a saved report with 3 tapes; say which: latest/r-0001 (r-0001, r-0002, r-0003)\n"
    )
    assert (
        "latest has no tape of a run r-9; it has those of r-0001,"
        in flakestorm(folder, "tapes", "show", "latest/r-9").err
    )
    assert flakestorm(folder, "run", "-q", "--prompt", "0").code == 1
    assert flakestorm(folder, "tapes", "show", "latest").out == flakestorm(folder, "tapes", "show", "latest/r-0001").out
    assert "nobody cannot be read: No such file" in flakestorm(folder, "tapes", "show", "nobody").err


def test_a_report_without_a_failure_has_nothing_to_shrink(folder: Path) -> None:
    contract = {"name": "c", "invariants": [{"type": "completes"}], "chaos_matrix": [{"name": "calm"}]}
    write_config(folder, agent={"type": "command", "start": "cat"}, contract=contract)
    assert flakestorm(folder, "contract", "run", "-q", "-o", "fine.json").code == 0
    done = flakestorm(folder, "shrink", "fine.json")
    assert (done.code, "no run of this report failed, so there is nothing to shrink" in done.err) == (2, True)
