"""The command line: one file per group of commands, loaded only when its command is run."""
