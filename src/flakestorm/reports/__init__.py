"""What people and programs read after a run. Reports consume the engine's `Report` and never look behind it."""
