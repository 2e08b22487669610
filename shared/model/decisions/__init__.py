"""Results of decisions: actions, placements, verdicts and commands."""
