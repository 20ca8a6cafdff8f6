import sys
from pathlib import Path

import pytest

import flakestorm
from flakestorm.api.recording import record_command
from flakestorm.api.verifying import verify
from flakestorm.errors import Misuse, TapeDamaged
from upstream import Upstream

SCRIPT = (
    "import sys, urllib.request as u; "
    "print(u.urlopen(u.Request(sys.argv[1], sys.argv[2].encode(), {'content-type': 'text/plain'})).read().decode())"
)


def argv(up: Upstream, text: str = "Oslo") -> list[str]:
    return [sys.executable, "-c", SCRIPT, f"{up.url}/search", text]


def test_a_command_is_run_again_and_compared(up, tmp_path: Path, capfd) -> None:
    tape = tmp_path / "a.tape"
    counts: list[int] = []
    ran = record_command(argv(up), tape, tools=[("search", "*/search")], told=counts.append)
    assert (ran.code, counts) == (0, [1])
    assert '{"flights": 3}' in capfd.readouterr().out
    tools = [("search", "*/search")]
    same = verify(tape, tools=tools)
    assert (same.exit_code, same.recorded, dict(same.requests)) == (0, 1, {"exact": 1})
    assert same.digests[0] == same.digests[1]
    other = verify(tape, argv(up, "Rome"), tools=tools)
    assert other.exit_code == 1
    assert "diverged" in other.differences[0]
    assert up.count() == 1


def test_what_cannot_be_run_again_is_said(up, tmp_path: Path) -> None:
    import httpx

    with flakestorm.record(tmp_path / "a.tape"):
        httpx.get(f"{up.url}/search")
    with pytest.raises(Misuse, match="verify-tape TAPE -- COMMAND"):
        verify(tmp_path / "a.tape")
    with flakestorm.record(tmp_path / "b.tape", input="x"):
        httpx.get(f"{up.url}/search")
    with pytest.raises(Misuse, match="-c"):
        verify(tmp_path / "b.tape")
    with flakestorm.record(tmp_path / "e.tape"):
        pass
    assert verify(tmp_path / "e.tape").exit_code == 3
    (tmp_path / "d.tape").write_text("no tape")
    with pytest.raises(TapeDamaged):
        verify(tmp_path / "d.tape")
