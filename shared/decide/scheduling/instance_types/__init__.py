"""Indexes over instance types: bitmaps, resources and price order."""
