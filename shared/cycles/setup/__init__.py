"""Parts that all cycles share: lease, options, snapshot, execution and report."""
