"""Every minute, and soon again while nodes come or go: each claim and node takes its next steps."""
