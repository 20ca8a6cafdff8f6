"""How a running program was started, by what the system says; here a made-up system says it."""

import socket
import sys

import pytest

from flakestorm.discovery.process import Started, listening, started


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "net").mkdir()
    row = "0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4242 1\n"
    (tmp_path / "net" / "tcp").write_text("header\n" + row)
    (tmp_path / "self").mkdir()
    one = tmp_path / "17"
    (one / "fd").mkdir(parents=True)
    (one / "fd" / "3").symlink_to("socket:[4242]")
    (one / "cwd").symlink_to(tmp_path)
    (one / "cmdline").write_bytes(b"python\0agent.py\0--port\x008000\0")
    (one / "environ").write_bytes(b"HOME=/h\0API_KEY=secret\0SSH_TTY=/dev/1\0MODE=a\0")
    return tmp_path


def test_the_program_behind_a_port(proc) -> None:
    assert listening(proc) == {8000: "4242"}
    found = started(8000, proc, {"HOME": "/h", "MODE": "b"})
    assert found == Started(("python", "agent.py", "--port", "8000"), proc, ("API_KEY", "MODE"))
    assert "secret" not in str(found)
    assert started(8001, proc) is None


def test_where_the_system_does_not_say(tmp_path) -> None:
    assert listening(tmp_path) == {}
    assert started(8000, tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says so")
def test_this_very_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = started(server.getsockname()[1])
    assert found is not None
    assert found.missing == () or isinstance(found.missing[0], str)
