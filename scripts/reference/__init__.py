"""Pages of docs/reference that are made from the code, so that they cannot say something else.

    python -m scripts.reference            writes them
    python -m scripts.reference --check    exits 1 if one is not what the code says now

A page is a function that gives its text. Two pages are written by hand and have a part that is made, between markers.
"""
