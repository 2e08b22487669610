"""An AWS account on loopback: stacks are deployed into it, and callers are somebody."""
