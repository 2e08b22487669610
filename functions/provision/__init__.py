"""Every minute, and soon again while pods wait: pending pods become NodeClaims become instances."""
