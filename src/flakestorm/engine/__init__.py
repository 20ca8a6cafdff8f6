"""The engine: plans runs, has them executed, judges them, scores them. It emits events and knows no vendor."""
