"""A simulated AWS account on loopback: it authenticates callers and deploys CloudFormation stacks."""
