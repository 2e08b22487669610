"""The reference pages, generated from code: `python -m docs.reference` writes them into this folder."""
