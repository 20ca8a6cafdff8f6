"""Tapes: the append-only record of one run."""
