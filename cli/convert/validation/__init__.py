"""Checks of converted objects against the CRDs and against what Joiner supports."""
