"""Speed, measured: one script per claim, each with its peer in the same run. `make bench` runs them all."""
