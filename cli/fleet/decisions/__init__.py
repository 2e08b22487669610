"""Decisions, markers and explanations of a fleet document, from the journal."""
