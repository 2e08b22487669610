"""Reserved Instances and Savings Plans in `joiner cost`: what they cover of the nodes, hour by hour."""
