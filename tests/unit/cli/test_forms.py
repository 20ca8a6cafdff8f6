import threading
from pathlib import Path

import pytest

from flakestorm.cli.forms import SUFFIX, ahead, exchanges_of, form_of, text, write
from flakestorm.cli.options import FORMATS
from flakestorm.engine.events import RunStarted
from flakestorm.errors import Misuse
from report_samples import hostile, sample


def test_every_form_offered_has_a_suffix_that_leads_back_to_it() -> None:
    assert set(SUFFIX) == set(FORMATS)
    for form, suffix in SUFFIX.items():
        assert form_of(None, Path(f"x{suffix.upper()}"), "html") == form


def test_what_was_asked_for_goes_before_the_files_name() -> None:
    assert form_of("sarif", Path("x.json"), "html") == "sarif"
    assert form_of(None, Path("x"), "html") == "html"
    assert form_of("junit", Path("x.log"), "html") == "junit"
    assert form_of(None, Path("x.log"), "sarif", chosen=True) == "sarif"
    assert form_of(None, None, "junit") == "junit"
    with pytest.raises(Misuse, match="'pdf' is not available in this version; available: html, json"):
        form_of(None, None, "pdf")


def test_a_suffix_that_no_form_has_is_refused() -> None:
    with pytest.raises(Misuse, match=r"r\.docx ends with \.docx, which no form does \(\.html, .*\.md.*say .* --format"):
        form_of(None, Path("r.docx"), "html")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", [sample, hostile])
def test_a_file_and_the_text_say_the_same(tmp_path, form, make) -> None:
    file = write(make(), form, tmp_path / "new" / f"x{SUFFIX[form]}")
    shown = text(make(), form)
    assert not shown.endswith("\n")
    assert file.read_text().strip() == shown.strip()


def test_a_tape_that_cannot_be_read_costs_its_timeline_only() -> None:
    assert exchanges_of(sample().runs[0]) == []


def test_a_page_is_got_ready_once_while_the_agent_is_at_work(monkeypatch) -> None:
    ready, called = threading.Event(), []
    monkeypatch.setattr("flakestorm.reports.html.prepare", lambda: (called.append(1), ready.set()))
    for form in ("json", "html"):
        tell = ahead(form)
        for run in ("r-0001", "r-0002"):
            tell(RunStarted(run, "calm", 0))
    assert ready.wait(60)
    assert called == [1]


def test_a_page_that_cannot_be_got_ready_costs_nothing_yet(monkeypatch) -> None:
    tried = threading.Event()

    def fail() -> None:
        tried.set()
        raise OSError("no template")

    monkeypatch.setattr("flakestorm.reports.html.prepare", fail)
    ahead("html")(RunStarted("r-0001", "calm", 0))
    assert tried.wait(60)


def test_nothing_is_made_before_what_gets_ready_is(monkeypatch) -> None:
    going, go_on, done = threading.Event(), threading.Event(), []

    def prepare() -> None:
        going.set()
        go_on.wait(60)
        done.append("prepared")

    monkeypatch.setattr("flakestorm.reports.html.prepare", prepare)
    ahead("html")(RunStarted("r-0001", "calm", 0))
    assert going.wait(60)
    making = threading.Thread(target=lambda: (text(sample(), "markdown"), done.append("made")))
    making.start()
    go_on.set()
    making.join(60)
    assert done == ["prepared", "made"]
