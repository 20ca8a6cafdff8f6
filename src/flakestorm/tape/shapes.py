"""What secrets look like: the keys of providers, by their shapes, as data.

Each shape names a needle that is in every such key, in lower case, so that one pass over the needles tells most texts
to hold none of them. The examples are invented; the tests find every one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["SHAPES", "shaped"]

_B = rb"(?<![A-Za-z0-9])"  # not in the middle of a word

SHAPES: tuple[tuple[str, bytes, bytes, str], ...] = (
    ("OpenAI, Anthropic, OpenRouter", b"sk-", _B + rb"sk-[A-Za-z0-9_-]{16,512}", "sk-" "proj-9aF3kLm2Qx7Zt0Vb5Wn8"),
    ("Stripe", b"k_live_", _B + rb"[srp]k_live_[A-Za-z0-9]{10,247}", "sk_" "live_4eC39HqLyjWDarjtT1zdp7dc"),
    ("Stripe, testing", b"k_test_", _B + rb"[srp]k_test_[A-Za-z0-9]{10,247}", "rk_" "test_4eC39HqLyjWDarjtT1zdp7dc"),
    ("Stripe webhook", b"whsec_", _B + rb"whsec_[A-Za-z0-9+/=]{16,128}", "whsec_" "8fKq2LmZx7Vt0Wb5Qn3Rj6"),
    ("GitHub, personal", b"ghp_", _B + rb"ghp_[A-Za-z0-9]{20,255}", "ghp_" "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("GitHub, OAuth", b"gho_", _B + rb"gho_[A-Za-z0-9]{20,255}", "gho_" "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("GitHub, user", b"ghu_", _B + rb"ghu_[A-Za-z0-9]{20,255}", "ghu_" "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("GitHub, server", b"ghs_", _B + rb"ghs_[A-Za-z0-9]{20,255}", "ghs_" "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("GitHub, refresh", b"ghr_", _B + rb"ghr_[A-Za-z0-9]{20,255}", "ghr_" "16C7e42F292c6912E7710c838347Ae178B4a"),
    ("GitHub, fine-grained", b"github_pat_", rb"github_pat_[A-Za-z0-9_]{20,255}",
     "github_pat_" "11ABCDE0Y0aBcDeFgHiJkL_mN"),
    ("GitLab", b"glpat-", _B + rb"glpat-[A-Za-z0-9_.-]{16,255}", "glpat-" "x7Vt0Wb5Qn3Rj6Lm2Kf9"),
    ("AWS, access key", b"akia", _B + rb"AKIA[0-9A-Z]{16}(?![0-9A-Za-z])", "AKIA" "IOSFODNN7EXAMPLE"),
    ("AWS, temporary key", b"asia", _B + rb"ASIA[0-9A-Z]{16}(?![0-9A-Za-z])", "ASIA" "IOSFODNN7EXAMPLE"),
    ("Google, API key", b"aiza", _B + rb"AIza[0-9A-Za-z_-]{35}", "AIza" "SyD3kLm2Qx7Zt0Vb5Wn8Rj6Hf4Gc1Pd9YqE"),
    ("Google, OAuth", b"ya29.", _B + rb"ya29\.[0-9A-Za-z_-]{20,1024}", "ya29." "a0AfH6SMBx7Zt0Vb5Wn8Rj6Hf4Gc"),
    ("Google, OAuth client", b"gocspx-", _B + rb"GOCSPX-[0-9A-Za-z_-]{20,64}", "GOCSPX-" "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9Yq"),
    ("Slack", b"xox", _B + rb"xox[abeoprs]-[0-9A-Za-z-]{10,255}", "xoxb-" "123456789012-AbCdEfGhIjKl"),
    ("Slack, app", b"xapp-", _B + rb"xapp-[0-9A-Za-z-]{10,255}", "xapp-" "1-A0123-456-abcdef0123"),
    ("Slack webhook", b"hooks.slack.com/", rb"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,128}",
     "https://hooks.slack.com/services/" "T0001/B0002/x7Zt0Vb5Wn8Rj6"),
    ("JWT", b"eyj", _B + rb"eyJ[0-9A-Za-z_-]{8,8192}\.[0-9A-Za-z_-]{8,16384}(?:\.[0-9A-Za-z_-]{4,2048})?",
     "eyJhbGciOiJIUzI1NiJ9." "eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhb"),
    ("Groq", b"gsk_", _B + rb"gsk_[A-Za-z0-9]{20,255}", "gsk_" "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9Yq"),
    ("xAI", b"xai-", _B + rb"xai-[A-Za-z0-9]{20,255}", "xai-" "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9Yq"),
    ("Perplexity", b"pplx-", _B + rb"pplx-[A-Za-z0-9]{20,255}", "pplx-" "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9Yq"),
    ("NVIDIA", b"nvapi-", _B + rb"nvapi-[A-Za-z0-9_-]{20,255}", "nvapi-" "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9Yq"),
    ("Tavily", b"tvly-", _B + rb"tvly-[A-Za-z0-9_-]{16,255}", "tvly-" "x7Zt0Vb5Wn8Rj6Hf4Gc1"),
    ("LangSmith", b"lsv2_", _B + rb"lsv2_[a-z]{2}_[A-Za-z0-9_]{16,255}", "lsv2_" "pt_8c1f0e7a9b2d4c6e_1a2b3c4d5e"),
    ("Hugging Face", b"hf_", _B + rb"hf_[A-Za-z0-9]{20,255}", "hf_" "x7ZtOVbKWnLRjMHfNGcPPdQYq"),
    ("Replicate", b"r8_", _B + rb"r8_[A-Za-z0-9]{20,255}", "r8_" "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9Yq"),
    ("npm", b"npm_", _B + rb"npm_[A-Za-z0-9]{20,255}", "npm_" "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9YqEaXsZcD"),
    ("PyPI", b"pypi-", _B + rb"pypi-[A-Za-z0-9_-]{20,512}", "pypi-" "AgEIcHlwaS5vcmcCJDx7Zt0Vb5Wn8"),
    ("SendGrid", b"sg.", _B + rb"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}",
     "SG." "x7Zt0Vb5Wn8Rj6Hf4Gc1Pd.9YqEaXsZcDvFbGnHmJkL"),
    ("DigitalOcean", b"dop_v1_", _B + rb"dop_v1_[a-f0-9]{32,128}", "dop_v1_" "0123456789abcdef0123456789abcdef"),
    ("Docker Hub", b"dckr_pat_", _B + rb"dckr_pat_[A-Za-z0-9_-]{16,255}", "dckr_pat_" "x7Zt0Vb5Wn8Rj6Hf4Gc1"),
    ("Shopify", b"shpat_", _B + rb"shpat_[A-Fa-f0-9]{24,64}", "shpat_" "0123456789abcdef0123456789abcdef"),
    ("Atlassian", b"atatt3", _B + rb"ATATT3[A-Za-z0-9_=-]{20,512}", "ATATT3" "xFfGF0x7Zt0Vb5Wn8Rj6Hf4Gc"),
    ("Discord webhook", b"/api/webhooks/", rb"(?<=/api/webhooks/)[0-9]{10,24}/[A-Za-z0-9_-]{20,128}",
     "https://discord.com/api/webhooks/" "123456789012345678/x7Zt0Vb5Wn8Rj6Hf4Gc1Pd9Yq"),
    ("Telegram", b":aa", rb"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{30,40}(?![A-Za-z0-9_-])",
     "123456789:" "AAx7Zt0Vb5Wn8Rj6Hf4Gc1Pd9YqEaXsZcDv"),
    ("a private key", b"-----begin",
     rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,6}-----[\s\S]{1,16384}?"
     rb"-----END [A-Z0-9 ]{0,50}KEY[A-Z ]{0,6}-----",
     "-----BEGIN " "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"),
)  # fmt: skip
"""(whose, needle, pattern, example) each."""

_COMPILED: dict[bytes, re.Pattern[bytes]] = {}


def shaped(text: bytes, lower: bytes) -> Iterator[bytes]:
    """The keys in a text.

    Args:
        lower: the text in lower case.
    """
    for _, needle, pattern, _ in SHAPES:
        if needle in lower:
            if (compiled := _COMPILED.get(pattern)) is None:
                compiled = _COMPILED[pattern] = re.compile(pattern)
            for found in compiled.finditer(text):
                yield found[0]
