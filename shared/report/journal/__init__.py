"""The journal: entries, decision records and what a replay needs."""
