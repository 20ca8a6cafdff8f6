"""What gives secrets away besides what is sent: the command line that is recorded, packed bodies, what servers echo."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from e2e_support import flakestorm
from flakestorm.tape.reader import Tape
from upstream import Canned, Upstream, document

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

OPTION, PACKED, BASIC = "planted-option-0001", "planted-packed-0002", "planted-basic-0003"
AGENT = f"""
import sys, httpx
reply = httpx.get(sys.argv[1] + "/packed", headers={{"accept-encoding": "identity"}})
assert reply.status_code == 200
said = httpx.get(sys.argv[1] + "/echo", auth=("ann", "{BASIC}")).text
print(said)
"""


def test_options_packed_replies_and_echoes_give_nothing_away(tmp_path: Path) -> None:
    """An option's value in another word of the command, a secret in zstd, a password that came as base64 only."""
    packed = zstd.compress(b'{"password": "%b", "rows": "%b"}' % (PACKED.encode(), b"x" * 2000))
    (tmp_path / "agent.py").write_text(AGENT)
    with Upstream() as up:
        up.reply("/packed", Canned((packed,), headers=(("content-encoding", "zstd"),)))
        up.reply("/echo", document({"you": f"ann with {BASIC}"}))
        command = [sys.executable, "agent.py", up.url, "--api-key", OPTION]
        done = flakestorm(tmp_path, "record", "-o", "a.tape", "--", *command)
    assert done.code == 0, done.err
    assert BASIC in done.out  # the caller is told what the agent said; only what is kept is cleaned
    shown = flakestorm(tmp_path, "tapes", "show", "a.tape", "--format", "json")
    kept = (tmp_path / "a.tape").read_text() + shown.out
    for secret in (OPTION, PACKED, BASIC, base64.b64encode(f"ann:{BASIC}".encode()).decode()):
        assert secret not in kept
    [first, _] = Tape.open(tmp_path / "a.tape").exchanges()
    assert first.reply.body.startswith(b'{"password": "[secret:')
    again = flakestorm(tmp_path, "verify-tape", "a.tape")
    assert again.code == 0, again.out + again.err
