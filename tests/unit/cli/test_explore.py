import pytest

from unit_cli import run

pytestmark = pytest.mark.usefixtures("nobody")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--modes", "timeut"], "did you mean 'timeout'"),
        (["--prompt", "4"], "there is no golden prompt 4"),
        (["--resume", "nothing.json"], "nothing.json"),
        (["--budget", "1"], "budget"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str, capsys) -> None:
    assert run("explore", *words) == 2
    assert said in capsys.readouterr().err


def test_an_agent_that_is_not_there_is_inconclusive(capsys) -> None:
    assert run("explore") == 3
    assert "nothing could be searched" in capsys.readouterr().out
