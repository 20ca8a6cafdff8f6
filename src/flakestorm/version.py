"""The version, in one place: read by the build, `flakestorm --version`, reports and tapes."""

__version__ = "3.0.0.dev0"
