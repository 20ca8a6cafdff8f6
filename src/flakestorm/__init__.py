"""flakestorm: the agent reliability engine."""

from flakestorm.version import __version__

__all__ = ["__version__"]
