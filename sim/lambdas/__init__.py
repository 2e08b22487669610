"""Lambda, SQS and EventBridge as far as the stack uses them, wired by the synthesised template and by nothing else."""
