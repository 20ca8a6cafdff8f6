"""What people and programs read after a run: made of the engine's `Report` and, of calls, the tapes that it names."""
