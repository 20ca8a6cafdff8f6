"""Importers: tapes out of other tools' recordings.

A recording from a stranger is read as data, in bounds (`document`), understood by the importer of its form (`vcr`),
and sent through the same pipeline as a live run (`taping`), so an imported tape is named, redacted and sealed like any
other.
"""
