import json
from pathlib import Path

import pytest

from flakestorm.api import Options, load
from flakestorm.api.asking import ask, named_project
from flakestorm.core.call import Call, Reply
from flakestorm.errors import Misuse
from flakestorm.tape.origin import Named
from flakestorm.tape.reader import Tape

AGENT = """
import httpx

def answer(text):
    return text + httpx.get("http://127.0.0.1:9/search").text
"""


def test_one_input_is_asked_and_recorded(tmp_path: Path) -> None:
    (tmp_path / "asked_agent.py").write_text(AGENT)
    config = {"version": "2.0", "agent": {"type": "python", "endpoint": "asked_agent:answer"}, "golden_prompts": ["x"]}
    (tmp_path / "flakestorm.yaml").write_text(json.dumps({**config, "invariants": [{"type": "completes"}]}))

    def stand_in(_: Call):
        return Reply(200, (("content-type", "text/plain"),), b" stood in")
        yield

    path = tmp_path / "tapes" / "a.tape"
    project = load(tmp_path / "flakestorm.yaml")
    run = ask(project, "hello", path, Options(seed=1), within=(stand_in,), facts={"more": 1})
    tape = Tape.open(path)
    assert (run.output, run.error, tape.input, tape.header["more"]) == ("hello stood in", None, "hello", 1)
    (exchange,) = tape
    assert (exchange.sent, exchange.world) == (0, None)


def test_a_tape_that_names_no_config_says_what_to_give() -> None:
    with pytest.raises(Misuse, match=r"a\.tape was given an input; name the config of its agent with -c"):
        named_project(Path("a.tape"), Named())
