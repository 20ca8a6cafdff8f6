"""Patterns that find injected instructions, personal data and refusals in a text, offline. They are data: `*.yaml`."""
