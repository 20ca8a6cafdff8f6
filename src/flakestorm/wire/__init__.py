"""Bytes into meaning and back: each protocol a file or a room of its own, beside it what they share. Pure."""
