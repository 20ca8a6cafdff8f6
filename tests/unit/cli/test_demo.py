from flakestorm.cli import demo as module
from flakestorm.demo.run import CONFIG


def test_the_command_runs_the_bundled_config(monkeypatch, capsys, tmp_path) -> None:
    """The whole demo is run in tests/e2e; here only that an unrunnable one is told apart from a broken promise."""
    from unit_cli import run

    loaded = []

    class Project:
        def __init__(self, path) -> None:
            loaded.append(path)
            raise KeyboardInterrupt

    monkeypatch.setattr(module.api, "load", Project)
    monkeypatch.chdir(tmp_path)
    assert run("demo") == 130
    assert loaded == [CONFIG]
