"""What judging commands found out, kept beside the config in `.flakestorm/`: reports in SQLite, tapes by content."""
