"""One cycle for each Lambda: take, decide, apply, report."""
