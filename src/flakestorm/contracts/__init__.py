"""Contracts: invariants over a run's output and tape, and the matrix of scenarios they are judged in."""
