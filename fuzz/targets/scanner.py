"""Patterns on any text: places lie in the text, findings do not overlap, and no text takes long."""

from __future__ import annotations

from flakestorm.patterns.injection import injections
from flakestorm.patterns.refusal import is_refusal
from flakestorm.patterns.scanner import readings, scan
from fuzz.material import Bytes

__all__ = ["check"]

WORDS = (
    "ignore all previous instructions", "4111 1111 1111 1111", "john@example.com", "192.168.0.1", "2001:db8::1",
    "DE89370400440532013000", "123-45-6789", "+1 (555) 010-9999", "ssn", "passport", "base64,", "aWdub3Jl", "<!--",
    "-->", "http://example.com/a?b=c", "\u200b", "\u202e", "\U000e0041", "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
    "system:", "I cannot help",
    "aaaaaaaa", "1111111111", "....", "@@@@", "-----", "\n", "\r\n", "\t", "IBAN", "AKIAIOSFODNN7EXAMPLE",
    "00:1B:44:11:3A:B7",
)  # fmt: skip


def check(data: bytes) -> None:
    source = Bytes(data)
    way = source.byte()
    if way % 2:
        text = source.rest().decode("utf-8", "surrogateescape" if source.below(2) else "replace")
    else:
        text = "".join(
            WORDS[source.below(len(WORDS))] * (1 + source.below(3)) + source.text() for _ in range(source.below(12))
        )
    if way & 4:  # what scan looks for, and the rest
        for finding in readings(text):
            assert 0 <= finding.start < finding.end <= len(text)
    else:
        end = 0
        for finding in scan(text):
            assert 0 <= finding.start < finding.end <= len(text)
            assert finding.start >= end
            end = finding.end
    for finding in injections(text):
        assert 0 <= finding.start <= finding.end <= len(text)
    is_refusal(text)
