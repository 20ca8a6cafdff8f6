"""The nouns everything else is made of. No I/O, no clock, no vendor."""
