"""Clocks: virtual time and real time."""
