"""CloudFormation: stacks that are made, changed, taken back and taken away in the order of their dependencies."""
