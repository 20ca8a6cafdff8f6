from io import BytesIO

from pypdf import PdfReader

from flakestorm.reports.certificate_pdf import pdf
from flakestorm.reports.statement import Subject, Terms, of
from report_samples import HOSTILE, empty, hostile, sample


def words(report, **terms):
    said = of(report, [Subject("r-0001", "t.tape", "ab" * 32)], Terms(**terms), issued_at="2026-05-05T00:00:00Z")
    read = PdfReader(BytesIO(pdf(said, keyid="12" * 32, envelope="x.dsse.json")))
    return " ".join("".join(page.extract_text() for page in read.pages).split())


def test_it_says_what_the_page_says() -> None:
    said = words(sample(), tester="Zoë <b>Ada</b> 李", contract="travel", pass_threshold=50.0)
    for part in ("Fail", "Zoë <b>Ada</b> \\u674e", "travel", "71.43 of 100", "met: the least", "no-false-booking",
                 "x.dsse.json", "t.tape"):  # fmt: skip
        assert part in said, part


def test_it_stands_whatever_was_said() -> None:
    assert "no data" in words(empty())
    assert "Notes" in words(hostile(), tester=HOSTILE, contract=HOSTILE)
