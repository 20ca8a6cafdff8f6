import json
import sys
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from flakestorm.api.certifying import Issued, check, config_of, envelope_of, issue, terms_of
from flakestorm.config import loads
from flakestorm.errors import ConfigError, MissingExtra, Misuse
from flakestorm.reports import dsse
from flakestorm.reports.keys import own_key
from flakestorm.reports.statement import Terms
from report_samples import empty, sample
from store_support import with_tapes

NOW = datetime(2026, 5, 5, tzinfo=UTC)


def issued(tmp_path, report=None, form="html") -> Issued:
    report = report or with_tapes(tmp_path / "tapes")
    page = tmp_path / "out" / f"x.{form}"
    return issue(report, Terms("Ada"), page, form=form, signer=own_key(tmp_path / "keys"), now=NOW)


def test_one_subject_per_tape(tmp_path) -> None:
    done = issued(tmp_path)
    said = json.loads(b64decode(json.loads(done.envelope.read_bytes())["payload"]))
    assert [s["name"] for s in said["subject"]] == [f"../tapes/r-{n:04}.tape" for n in range(1, 9)]
    assert done.tapes == 8
    assert done.verdict == "fail"
    found = check(done.envelope)
    assert (found.problems, found.keys, found.page) == ((), (done.public,), True)
    assert check(done.page).problems == ()


@pytest.mark.parametrize("form", ["html", "pdf"])
def test_one_changed_byte_anywhere_is_noticed(tmp_path, form) -> None:
    done = issued(tmp_path, form=form)
    for file in (done.page, done.envelope, tmp_path / "tapes" / "r-0003.tape"):
        before = file.read_bytes()
        for at in {0, len(before) // 2, len(before) - 1}:
            file.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
            assert check(done.envelope).problems, (file, at)
            assert check(done.page).problems
        file.write_bytes(before)
        assert check(done.envelope).problems == ()


def test_a_missing_tape_is_named_and_may_be_elsewhere(tmp_path) -> None:
    done = issued(tmp_path)
    (tmp_path / "moved").mkdir()
    tape = tmp_path / "tapes" / "r-0002.tape"
    tape.rename(tmp_path / "moved" / "r-0002.tape")
    [problem] = check(done.envelope).problems
    assert problem.startswith("../tapes/r-0002.tape: the tape is missing")
    assert check(done.envelope, folders=[tmp_path / "moved"]).problems == ()
    tape.write_text("another")
    [problem] = check(done.envelope, folders=[tmp_path / "moved"]).problems
    assert "was changed" in problem


def test_the_page_may_be_left_at_home_but_not_be_another(tmp_path) -> None:
    done = issued(tmp_path)
    done.page.rename(tmp_path / "out" / "y.html")
    found = check(done.envelope)
    assert (found.problems, found.page) == ((), False)
    (tmp_path / "out" / "x.html").write_text("pass!")
    assert "the page was changed" in check(done.envelope).problems[0]


def test_the_signer_can_be_asked_for(tmp_path) -> None:
    done, other = issued(tmp_path), own_key(tmp_path / "other")
    assert check(done.envelope, trusted=done.public).problems == ()
    [problem] = check(done.envelope, trusted=other.public).problems
    assert dsse.keyid_of(other.public)[:16] in problem


def test_a_report_without_its_tapes_gets_none(tmp_path) -> None:
    report = with_tapes(tmp_path / "tapes")
    (tmp_path / "tapes" / "r-0004.tape").unlink()
    with pytest.raises(Misuse, match="are gone: r-0004"):
        issued(tmp_path, report)
    for nothing in (empty(), replace(sample(), runs=tuple(replace(r, tape="") for r in sample().runs))):
        with pytest.raises(Misuse, match="nothing a certificate could vouch for"):
            issued(tmp_path, nothing)
    assert not (tmp_path / "out").exists()


def test_signed_or_not_a_hostile_statement_is_only_invalid(tmp_path) -> None:
    file, key = tmp_path / "x.dsse.json", own_key(tmp_path)
    good = json.loads(b64decode(json.loads(issued(tmp_path).envelope.read_bytes())["payload"]))
    digest = good["subject"][0]["digest"]
    for said in (
        b"no json", b"[]", b"{}",
        {**good, "subject": [{"name": "a\0b", "digest": digest}]},
        {**good, "subject": [{"name": "/dev/zero", "digest": digest}]},
        {**good, "subject": [{"name": ".", "digest": {"sha256": "/" * 64}}]},
        {**good, "predicate": {**good["predicate"], "page": {"name": "../x", "digest": 3}}, "subject": [{"name": "/",
         "digest": digest}]},
    ):  # fmt: skip
        file.write_bytes(dsse.sealed(said if isinstance(said, bytes) else json.dumps(said).encode(), [key]))
        assert check(file, folders=[tmp_path]).problems


def test_a_file_that_is_not_there_is_misuse(tmp_path) -> None:
    with pytest.raises(Misuse, match="cannot be read"):
        check(tmp_path / "x.dsse.json")
    assert envelope_of(tmp_path / "a.b.html").name == "a.b.dsse.json"


def test_a_pdf_without_its_extra_names_it(tmp_path, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "flakestorm.reports.certificate_pdf", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == "reportlab"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "reportlab", None)
    with pytest.raises(MissingExtra, match=r"flakestorm\[pdf\]"):
        issued(tmp_path, form="pdf")


def test_terms_come_from_the_config(tmp_path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(
        'version: "2.0"\nagent: {type: python, endpoint: "a:b"}\ngolden_prompts: [x]\n'
        "contract: {name: travel, invariants: [{type: completes}], chaos_matrix: [{name: calm}]}\n"
        "certificate: {tester_name: Ada, pass_threshold: 80}\n"
    )
    terms = terms_of(loads(file.read_text()), file, sample())
    assert (terms.tester, terms.pass_threshold, terms.contract, terms.config) == ("Ada", 80, "travel", "f.yaml")
    assert terms.notes
    assert "after these runs began" in terms.notes[0]
    assert terms_of(loads(file.read_text()), file, replace(sample(), started_at="2999-01-01T00:00:00Z")).notes == ()
    assert terms_of(None, None, sample()) == Terms()


def test_variables_that_a_certificate_does_not_need_may_be_unset(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.setenv("NAME", "Ada")
    file = tmp_path / "f.yaml"
    text = (
        'version: "2.0"\nagent: {type: python, endpoint: "a:b", headers: {x: "${NOT_SET}", y: "$NOT_SET"}}\n'
        'golden_prompts: [x]\ncertificate: {tester_name: "${NAME}"}\n'
    )
    file.write_text(text)
    assert config_of(file).certificate.tester_name == "Ada"
    file.write_text(text.replace("${NAME}", "$${NAME}").replace("${NOT_SET}", ""))
    assert config_of(file).certificate.tester_name == "${NAME}"
    for wrong in (text.replace("${NAME}", "${NOT_SET}"), text.replace("[x]", "[x]\nadvanced: {seed: '${NOT_SET}'}")):
        file.write_text(wrong)
        with pytest.raises(ConfigError, match="NOT_SET is not set"):
            config_of(file)
