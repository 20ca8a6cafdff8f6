import webbrowser

import pytest

from flakestorm.cli import view
from unit_cli import run


@pytest.mark.parametrize(("display", "opened"), [(":0", ["http://x/"]), ("", [])])
def test_a_browser_is_opened_where_there_is_a_desktop(monkeypatch, display, opened) -> None:
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", found.append)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", display)
    view._open("http://x/")
    assert found == opened


def test_a_port_must_be_one(capsys) -> None:
    assert run("view", "--port", "70000") == 2
    assert "--port" in capsys.readouterr().err
