"""Prices and usage that limits in USD per hour count."""
