from pathlib import Path

import pytest

from corpus_support import corpus_world, manifest, project
from flakestorm import api
from flakestorm.api.shrink_case import case_of_line, case_of_tape
from flakestorm.core.conversation import Conversation
from flakestorm.errors import Misuse
from search_support import atoms

ENTRY = next(entry for entry in manifest() if entry.name == "makes_up_a_price")


def test_a_case_is_read_from_the_line_that_shows_it() -> None:
    case = case_of_line("flakestorm run --seed 3 --prompt 1 --inject 'tool/a#1=error:503'", golden=["x", "y"])
    assert (case.prompt, case.text, case.seed, case.atoms) == (1, None, 3, atoms("a#1=error:503"))
    assert case_of_line("flakestorm run --input y", golden=["x", "y"]).prompt == 1
    talk = case_of_line("flakestorm run --input hello --input 'pay now'", golden=["x"]).text
    assert isinstance(talk, Conversation)
    assert talk.turns == ("hello", "pay now")
    with pytest.raises(Misuse):
        case_of_line("flakestorm run --inject nonsense", golden=["x"])


def test_a_case_on_a_tape_keeps_the_settings_of_its_faults(tmp_path: Path) -> None:
    with corpus_world() as up:
        path = project(tmp_path, ENTRY, up)
        fault = "{tool: search, mode: error, error_code: 500, message: 'no, not now', times: 2}"
        path.write_text(f"{path.read_text()}\nchaos:\n  tool_faults: [{fault}]\n")
        work = api.load(path)
        run = work.chaos(None, api.Options(tapes=tmp_path / "a")).runs[0]
        case = case_of_tape(Path(run.tape), golden=ENTRY.prompts)
        (fault,) = case.atoms
        assert (str(fault.site), fault.fault) == ("tool/search#1", "error:500,message=no%2C not now")
        smallest = work.shrink(case, api.Options(tapes=tmp_path / "b"))
    assert smallest.case is not None
