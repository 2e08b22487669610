"""Launches with a new image, while its canary runs."""
