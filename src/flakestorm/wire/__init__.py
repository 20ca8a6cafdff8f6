"""Bytes into meaning and back, one file per protocol. Pure."""
