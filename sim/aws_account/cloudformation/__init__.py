"""CloudFormation: stacks are created, updated, rolled back and deleted in the order of their dependencies."""
