"""Faults: ways to break a call or its reply. One file per family; individual faults do not import one another."""
