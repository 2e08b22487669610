"""The reference, generated from what it is about: `python -m docs.reference` writes the pages beside this file."""
