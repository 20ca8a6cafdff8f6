"""Replay sessions: an incident's recorded tool replies, served to an agent whose model is live."""
