"""What a config gets wrong and only its use shows: exit 2, with file, line and key, before anything is sent."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from e2e_support import Done, flakestorm, write_config
from upstream import Upstream, document, text

AGENT = """
def answer(text): return "fine " + text
def clear(): pass
TOOLS = []
"""
NOBODY = "http://127.0.0.1:9/"
FAULT = {"tool": "odd", "mode": "error", "site": "nonsense"}
SIMILAR = {"type": "similarity", "expected": "x", "measure": "model"}
HERE = {"type": "python", "endpoint": "my_agent:answer"}
CONTRACT = {"name": "c", "invariants": [{"type": "completes"}], "chaos_matrix": [{"name": "calm"}]}


def judged(folder: Path, *args: str, agent: dict[str, Any], **blocks: Any) -> Done:
    (folder / "my_agent.py").write_text(AGENT)
    write_config(folder, agent=agent, contract=CONTRACT, **blocks)
    return flakestorm(folder, *(args or ("contract", "run")))


def line_of(folder: Path, text: str) -> int:
    lines = (folder / "flakestorm.yaml").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("agent", "key", "said", "known"),
    [
        ({**HERE, "endpoint": "my_agnt:answer"}, "endpoint", "'my_agnt' cannot be .*mean 'my_agent'", True),
        ({**HERE, "endpoint": "my_agent:anwser"}, "endpoint", "no 'anwser' in my_agent .*mean 'answer'", False),
        ({**HERE, "endpoint": "my_agent:TOOLS"}, "endpoint", "of type list and cannot be called", False),
        ({**HERE, "tools": "my_agent:TOOL"}, "tools", "no 'TOOL' in my_agent .*mean 'TOOLS'", False),
        ({**HERE, "reset_function": "my_agent:claer"}, "reset_function", "no 'claer' .*mean 'clear'", False),
        ({"type": "command", "start": "cat", "reset_function": "nope:x"}, "reset_function", "'nope' cannot be", True),
        ({"type": "command", "start": "cat", "cwd": "agnets"}, "cwd", "agnets does not exist; .*mean 'agents'", True),
        ({"endpoint": "http://127.0.0.1:{port}/", "start": "cat", "cwd": "x"}, "cwd", "x does not exist", True),
    ],
)
def test_what_is_named_and_not_there(tmp_path, agent: dict[str, Any], key: str, said: str, known: bool) -> None:
    (tmp_path / "agents").mkdir()
    done = judged(tmp_path, agent=agent)
    where = rf"error: flakestorm\.yaml:{line_of(tmp_path, f'{key}:')}: agent\.{key}: .*{said}"
    assert done.code == 2, done.out + done.err
    assert re.search(where, done.err), done.err
    assert "contract run" not in flakestorm(tmp_path, "report").out  # no report that was never finished
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} <= {"agents", ".flakestorm", "__pycache__"}
    checked = flakestorm(tmp_path, "contract", "validate")  # which runs no code of the agent's
    assert checked.code == (2 if known else 0), checked.err
    assert not known or re.search(where, checked.err), checked.err


def test_a_module_whose_own_code_fails_cannot_be_judged(tmp_path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\ndef answer(text): return text\n")
    done = judged(tmp_path, agent={**HERE, "endpoint": "broken:answer"})
    assert done.code == 3
    assert "No module named 'nothing_of_this_name'" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("agent", "blocks", "where", "args"),
    [
        ({**HERE, "start": "cat"}, {}, "start: cat|agent.start", ()),
        ({"endpoint": "nowhere"}, {}, "endpoint: nowhere|agent.endpoint", ()),
        ({"endpoint": NOBODY, "request_template": "x"}, {}, "request_template:|agent.request_template", ()),
        ({"endpoint": NOBODY, "response_path": "a..b"}, {}, "response_path:|agent.response_path", ()),
        ({"type": "command", "start": "cat 'x"}, {}, "start:|agent.start", ()),
        ({"type": "command", "start": "cat"}, {"golden_prompts": ["a", ["b", "c"]]}, "- b|golden_prompts[1]", ()),
        ({"type": "command", "start": "cat", "reset_endpoint": "/odd"}, {}, "/odd|agent.reset_endpoint", ()),
        (HERE, {}, "version|invariants", ("chaos", "--profile", "api_outage")),
        (HERE, {"invariants": [{"type": "judge", "rubric": "x"}]}, "version|model", ("run", "--prompt", "0")),
        (HERE, {"mutations": {"custom_templates": {"mine": "no place"}}, "invariants": [{"type": "completes"}]},
         "mine: no place|mutations.custom_templates.mine", ("mutate", "hello")),
        (HERE, {"boundary": {"redact": ["fine", "(("]}}, "- ((|boundary.redact[1]", ("record", "--", "true")),
        (HERE, {"boundary": {"redact": ["fine", "$.a[["]}}, "- $.a|boundary.redact[1]", ("run", "--prompt", "0")),
        (HERE, {"chaos": {"tool_faults": [FAULT]}, "invariants": [{"type": "completes"}]},
         "tool: odd|chaos.tool_faults[0]", ("chaos",)),
        (HERE, {"chaos": {"tool_faults": [FAULT]}}, "tool: odd|chaos.tool_faults[0]", ("gateway", "--chaos")),
        (HERE, {"replays": {"sessions": [{"file": "gone.yaml"}]}}, "gone.yaml|replays.sessions[0].file",
         ("replay", "run")),
        (HERE, {"replays": {"sources": [{"type": "otel", "file": "gone"}]}}, "gone|replays.sources[0].file",
         ("replay", "run")),
        (HERE, {"replays": {"sessions": [{"id": "a", "input": "b", "contract": "d"}]}},
         "contract: d|replays.sessions[0].contract", ("replay", "run")),
        (HERE, {"model": {"provider": "anthropic"}, "invariants": [SIMILAR]}, "provider:|model.provider",
         ("run", "--prompt", "0")),
    ],
)  # fmt: skip
def test_every_complaint_has_its_line(
    tmp_path, agent: dict[str, Any], blocks: dict[str, Any], where: str, args: tuple[str, ...]
) -> None:
    done = judged(tmp_path, *args, agent=agent, **blocks)
    written, _, key = where.partition("|")
    assert done.code == 2, done.out + done.err
    assert f"error: flakestorm.yaml:{line_of(tmp_path, written)}: {key}: " in done.err


@pytest.fixture
def form():
    """An agent that takes a form's fields."""
    with Upstream() as up:
        up.reply("/book", document({"output": "booked"}))
        yield up


def asked(folder: Path, form: Upstream, *args: str, template: str = '{"to": "{city}", "m": "{prompt}"}') -> Done:
    agent = {"endpoint": f"{form.url}/book", "request_template": template}
    rules = [{"type": "completes"}]
    sessions = [{"id": "odd", "input": "Date: Friday", "contract": "c"}]
    prompts = ["City: Oslo", *([] if "given" in folder.name else ["Date: Monday"])]
    blocks = {"golden_prompts": prompts, "invariants": rules, "contract": CONTRACT, "replays": {"sessions": sessions}}
    write_config(folder, agent=agent, **blocks)
    return flakestorm(folder, *args)


@pytest.mark.parametrize(
    "args",
    [("run", "--prompt", "0"), ("contract", "run"), ("contract", "validate"), ("run",), ("explore",), ("verify",)],
)
def test_a_prompt_without_a_key_that_others_have_is_never_sent(tmp_path, form: Upstream, args: tuple[str, ...]) -> None:
    done = asked(tmp_path, form, *args)
    assert done.code == 2, done.out
    where = f"flakestorm.yaml:{line_of(tmp_path, '- ' + repr('Date: Monday'))}: golden_prompts[1]: "
    assert f"error: {where}request_template takes {{city}}, which golden_prompts[0] gives" in done.err
    assert form.requests == []


@pytest.mark.parametrize(
    ("args", "who"),
    [
        (("run", "--input", "hello"), 'the input "hello"'),
        (("record", "--input", "hello", "-o", "x.tape"), 'the input "hello"'),
        (("replay", "run"), "the input of session 'odd'"),
    ],
)
def test_an_input_from_elsewhere_without_that_key_is_never_sent(
    tmp_path, form: Upstream, args: tuple[str, ...], who: str
) -> None:
    (tmp_path / "given").mkdir()
    done = asked(tmp_path / "given", form, *args)
    line = line_of(tmp_path / "given", "request_template:")
    assert done.code == 2, done.out
    assert f"error: flakestorm.yaml:{line}: agent.request_template: {who}: request_template takes {{city}}" in done.err
    assert form.requests == []


def test_where_every_input_has_the_key_it_is_sent(tmp_path, form: Upstream) -> None:
    (tmp_path / "given").mkdir()
    assert asked(tmp_path / "given", form, "contract", "run").code == 0
    assert [request.json() for request in form.requests] == [{"to": "Oslo", "m": "City: Oslo"}]
    template = '{"to": "{city}", "m": "{prompt}", "note": "{as it is}", "day": {date}}'
    assert asked(tmp_path / "given", form, "contract", "run", template=template).code == 0
    assert form.requests[-1].json() == {"to": "Oslo", "m": "City: Oslo", "note": "{as it is}", "day": None}


def test_a_reply_in_its_own_charset_is_an_answer(tmp_path, form: Upstream) -> None:
    form.reply(
        "/book", text('{"output": "caf\u00e9"}'.encode("latin-1"), content_type="application/json; charset=ISO-8859-1")
    )
    (tmp_path / "given").mkdir()
    asked(tmp_path / "given", form, "contract", "run", "--format", "json", "-o", "r.json")
    (run,) = json.loads((tmp_path / "given" / "r.json").read_text())["runs"]
    assert (run["output"], run["error"]) == ("caf\u00e9", None)
    form.reply("/book", text(b'{"output": "caf\xe9"}', content_type="application/json"))
    asked(tmp_path / "given", form, "contract", "run", "--format", "json", "-o", "r.json")
    (run,) = json.loads((tmp_path / "given" / "r.json").read_text())["runs"]
    assert "which is no UTF-8; an agent that writes another charset names it in its Content-Type" in run["error"]


def test_an_input_too_long_for_an_argument_says_the_way_out(tmp_path) -> None:
    prompt = "x" * 200_000
    agent = {"type": "command", "start": ["printf", "%s", "{prompt}"]}
    write_config(tmp_path, agent=agent, golden_prompts=[prompt], contract=CONTRACT)
    done = flakestorm(tmp_path, "contract", "run")
    assert done.code == 3
    said = " ".join(done.out.split())
    assert "The input has 200,000 bytes: leave {prompt} out of agent.start, and the agent gets its input on" in said
    write_config(tmp_path, agent={**agent, "start": "cat"}, golden_prompts=[prompt], contract=CONTRACT)
    assert flakestorm(tmp_path, "contract", "run").code == 0
