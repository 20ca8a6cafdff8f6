"""A small travel agent with a planted bug, its tools, its model and its contract: flakestorm tried out without a key.

`agent.py` is written the way such agents are written and knows nothing of flakestorm; `flakestorm.yaml` beside it is
meant to be copied.
"""
