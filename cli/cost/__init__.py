"""`joiner cost`: cost of nodes by day, NodePool, instance type or label."""
