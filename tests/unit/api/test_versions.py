import subprocess

import pytest

from flakestorm.api.versions import version
from flakestorm.engine.events import Report
from flakestorm.errors import Misuse
from flakestorm.reports.document import write_json

CONFIG = 'version: "2.0"\nagent: {type: python, endpoint: "a:b"}\ngolden_prompts: [hello]\n'
SAVED = Report("contract run", "pass", 0, "", 1, "", 0.0, {}, (), ())


def nothing(name: str) -> Report:
    raise Misuse(f"no report {name!r}")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "repository" / "below"
    folder.mkdir(parents=True)
    (folder / "flakestorm.yaml").write_text(CONFIG)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=folder.parent, check=True)
    return folder / "flakestorm.yaml"


def test_a_config_or_the_folder_of_one(project) -> None:
    for name in (str(project), str(project.parent)):
        with version(name, project, nothing) as found:
            assert (found.kind, found.path) == ("config", project)


def test_a_json_report_and_a_saved_one(project, tmp_path) -> None:
    file = write_json(SAVED, tmp_path / "r.json")
    with version(str(file), project, nothing) as found:
        assert found.report is not None
    for name in ("latest", "20260102-030405-abcd", "abcd"):
        with version(name, project, lambda _: SAVED) as found:
            assert (found.kind, found.report) == ("report", SAVED)


def test_a_commit_is_checked_out_and_gone_afterwards(project, monkeypatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # as in a hook
    project.write_text(CONFIG.replace("hello", "later"))
    with version("HEAD", project, nothing) as found:
        assert found.config is not None
        assert (found.kind, found.config.golden_prompts) == ("git", ["hello"])
        assert found.path.parent.name == "below"
        assert found.path != project
    assert not found.path.exists()


def test_what_means_nothing_says_what_was_tried(project, tmp_path) -> None:
    with pytest.raises(Misuse, match="no file, no commit"), version("nowhere", project, nothing):
        pass
    with pytest.raises(Misuse, match="no file, no commit"), version("--help", tmp_path / "x.yaml", nothing):
        pass


def test_a_commit_without_the_config_says_so(project) -> None:
    other = project.with_name("new.yaml")
    other.write_text(CONFIG)
    with pytest.raises(Misuse, match=r"there is no below/new\.yaml in 'HEAD'"), version("HEAD", other, nothing):
        pass
