"""Offline evaluation of IAM policies: policies and requests as values, and one access decision."""
