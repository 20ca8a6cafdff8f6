from importlib.metadata import version

import flakestorm


def test_the_installed_version_is_the_one_in_the_source() -> None:
    assert flakestorm.__version__ == version("flakestorm")
