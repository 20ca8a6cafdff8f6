from pathlib import Path
from typing import Any

import pytest

from contracts_support import CRASH, call, said
from flakestorm.config.load import loads
from flakestorm.config.model import Invariant
from flakestorm.contracts.base import RunView
from flakestorm.contracts.checks import check
from flakestorm.contracts.matrix import judge, prepare
from flakestorm.core.verdict import Verdict
from flakestorm.errors import ConfigError

RULES = """
from flakestorm.core.verdict import failed, inconclusive

def polite(run):
    return "please" in run.output

def paid_once(run):
    paid = run.calls(tool="pay*")
    return len(paid) == 1 or failed(f"paid {len(paid)} times")

def shrugs(run):
    return inconclusive("who knows")

def words(run):
    return "fine"

def crashes(run):
    return helper(run)

def helper(run):
    return run.output["answer"]

def lazy(run):
    import wordlist
    return run.output in wordlist.WORDS

async def later(run):
    return True

def two(run, other):
    return True

LIMIT = 3
"""


def invariant(folder: Path, function: str, **more: Any) -> Invariant:
    (folder / "rules.py").write_text(RULES)
    (folder / "wordlist.py").write_text("WORDS = ['hello']")
    settings = "".join(f", {key}: {value}" for key, value in more.items())
    text = (
        "agent: {endpoint: 'http://127.0.0.1:1/'}\ngolden_prompts: [hi]\ninvariants:\n"
        f"  - {{id: rule, type: check, function: '{function}'{settings}}}\n"
    )
    return loads(text, file="f.yaml", folder=folder).invariants[0]


def verdict(folder: Path, function: str, run: RunView, **more: Any) -> Verdict:
    spec = invariant(folder, function, **more)
    prepare([spec])
    result = judge(spec, run)
    assert result is not None
    return result


def test_a_function_of_the_config_s_folder_judges(tmp_path: Path) -> None:
    assert verdict(tmp_path, "rules:polite", said("yes, please")).reason == "the check returned True"
    assert verdict(tmp_path, "rules:polite", said("no")).outcome == "fail"
    assert verdict(tmp_path, "rules:polite", said("no"), negate="true").outcome == "pass"
    paid = [call("tool", "pay", n) for n in (1, 2)]
    assert verdict(tmp_path, "rules:paid_once", said("", exchanges=paid)).reason == "paid 2 times"
    assert verdict(tmp_path, "rules:paid_once", said("", exchanges=paid[:1])).outcome == "pass"
    assert verdict(tmp_path, "rules:shrugs", said("x")) == Verdict("inconclusive", "who knows")
    assert verdict(tmp_path, "rules:lazy", said("hello")).outcome == "pass"  # it imports when it is called


def test_a_crash_is_inconclusive_with_its_traceback(tmp_path: Path) -> None:
    result = verdict(tmp_path, "rules:crashes", said("x"))
    assert result.outcome == "inconclusive"
    assert result.reason.startswith("check crashed: TypeError: string indices must be integers")
    assert f"in helper, {tmp_path}/rules.py:21, called in crashes, {tmp_path}/rules.py:18" in result.reason


def test_what_is_no_verdict_is_inconclusive(tmp_path: Path) -> None:
    assert verdict(tmp_path, "rules:words", said("x")).reason == (
        "the check returned 'fine'; it must return a Verdict or a bool"
    )


@pytest.mark.parametrize("negate", ["false", "true"])
def test_without_an_output_a_pass_proves_nothing_and_a_fail_is_one(tmp_path: Path, negate: str) -> None:
    run = RunView("hi", error=CRASH, exchanges=[call("tool", "pay")])
    paid_once = verdict(tmp_path, "rules:paid_once", run, negate=negate)
    polite = verdict(tmp_path, "rules:polite", run, negate=negate)
    assert {paid_once.outcome, polite.outcome} == {"inconclusive", "fail"}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("rules:missing", "there is no 'missing' in rules"),
        ("nowhere:polite", "the module 'nowhere' cannot be imported"),
        ("rules", "is not of the form module:function"),
        ("rules:later", "is async"),
        ("rules:two", "must take the run and nothing else"),
        ("rules:LIMIT", "is a int; it must be a function"),
    ],
)
def test_a_function_that_cannot_judge_is_refused_by_file_and_line(tmp_path: Path, function: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare([invariant(tmp_path, function)])
    assert str(caught.value).startswith("f.yaml:4: invariant 'rule': ")
    assert message in str(caught.value)


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    spec = invariant(tmp_path, "rules:polite")
    prepare([spec])
    (tmp_path / "rules.py").write_text("def polite(run):\n    return False\n# now longer than a second ago\n")
    prepare([spec])
    assert check(spec, said("please")) is False
