"""`joiner consolidate` and `joiner rebalance`: what disruption would do, and what it saves."""
