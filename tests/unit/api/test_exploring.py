import shlex
from pathlib import Path

import pytest

from corpus_support import corpus_world, manifest, project
from flakestorm import api
from flakestorm.errors import Misuse
from flakestorm.reports.document import from_document, to_document

ENTRY = next(entry for entry in manifest() if entry.name == "no_average")


def test_a_search_that_is_resumed_makes_no_run_twice_and_ends_the_same(tmp_path: Path) -> None:
    with corpus_world() as up:
        work = api.load(project(tmp_path, ENTRY, up))
        part = work.explore(api.Options(tapes=tmp_path / "a"), budget=4, modes=["error"])
        before = up.count()
        whole = work.explore(api.Options(tapes=tmp_path / "b", resume=part), modes=["error"])
        resumed = up.count() - before
        fresh = work.explore(api.Options(tapes=tmp_path / "c"), modes=["error"])
        made = up.count() - before - resumed
    assert resumed < made
    assert [f.schedule for f in whole.findings] == [f.schedule for f in fresh.findings]
    assert whole.coverage == fresh.coverage
    assert any("--budget 4" in note for note in part.notes)


def test_the_report_reads_back(tmp_path: Path) -> None:
    with corpus_world() as up:
        report = api.load(project(tmp_path, ENTRY, up)).explore(api.Options(tapes=tmp_path / "a"), modes=["error"])
    document = to_document(report)
    assert document["coverage"]["of"]["sites"] == 2
    assert {at["mode"] for at in document["findings"][0]["schedule"]} == {"error"}
    assert from_document(document) == report


def test_an_agent_that_fails_anyway_and_a_report_of_another_command_are_refused(tmp_path: Path) -> None:
    with corpus_world() as up:
        up.reply("/north", up_down())
        up.reply("/south", up_down())
        work = api.load(project(tmp_path, ENTRY, up))
        report = work.explore(api.Options(tapes=tmp_path / "a"), modes=["error"])
        assert (report.exit_code, report.verdict) == (3, "inconclusive")
        assert "fails without any fault: answers" in report.headline
        other = work.inject(0, options=api.Options(tapes=tmp_path / "b"))
        with pytest.raises(Misuse, match="not of `explore`"):
            work.explore(api.Options(tapes=tmp_path / "c", resume=other))


BESIDE = """
def search(question: str) -> str:
    return "three flights"

TOOLS = {"search": search}

def agent(prompt: str) -> str:
    try:
        found = TOOLS["search"](prompt)
    except Exception:
        found = "nothing"
    return "I will not" if "strange" in prompt else f"Found {found}"
"""


def test_a_prompt_that_fails_anyway_is_not_kept_by_others_that_do_not(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(BESIDE)
    (tmp_path / "flakestorm.yaml").write_text(
        """
version: "2.0"
agent: {type: python, endpoint: "beside:agent", tools: "beside:TOOLS"}
golden_prompts: [a flight, a strange flight]
invariants: [{id: finds, type: contains, value: Found}]
"""
    )
    work = api.load(tmp_path / "flakestorm.yaml")
    report = work.explore(api.Options(tapes=tmp_path / "a"), modes=["error"])
    assert (report.exit_code, report.verdict) == (3, "inconclusive")
    assert report.headline == (
        "prompt 1 could not be searched, for a promise is broken there without any fault; with the others, 1 of 1 "
        "faults broke none"
    )


def up_down():
    from upstream import text

    return text("down", status=503)


SPELLING = """
import os
import httpx

def agent(prompt: str) -> str:
    try:
        with httpx.Client(timeout=20) as client:
            reply = client.post(os.environ["CORPUS_WORLD"] + "/search").raise_for_status()
            return f"It costs {reply.json()['price']} EUR."
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return f"Sorry, the search is unavailable; look for flights to {prompt.split('flight to ')[1]}"
"""
"""Its excuse takes for granted how the question is spelt."""


def test_a_bug_that_takes_a_fault_and_another_input_is_found_with_other_inputs(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "spelling_agent.py").write_text(SPELLING)
    monkeypatch.syspath_prepend(str(tmp_path))
    with corpus_world() as up:
        entry = next(each for each in manifest() if each.name == "no_retry")
        path = project(tmp_path, entry, up)
        path.write_text(path.read_text().replace("no_retry:bug", "spelling_agent:agent"))
        work = api.load(path)
        plain = work.explore(api.Options(tapes=tmp_path / "a"), modes=["error"])
        assert (plain.verdict, plain.findings) == ("pass", ())
        report = work.explore(api.Options(tapes=tmp_path / "b"), modes=["error"], inputs=8)
        (finding,) = report.findings
        assert [(at.site, at.fault) for at in finding.schedule] == [("tool/search#1", "error")]
        assert finding.input is not None
        assert "flight to " not in finding.input
        assert f"--input {shlex.quote(finding.input)}" in finding.reproduce
        again = work.inject(finding.input, ["tool/search#1=error"], api.Options(tapes=tmp_path / "c"))
        assert again.verdict == "fail"
        assert work.inject(finding.input, [], api.Options(tapes=tmp_path / "d")).verdict != "fail"
        assert any("of 8 other inputs" in note for note in report.notes)
