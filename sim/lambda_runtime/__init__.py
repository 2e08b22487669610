"""Lambda, SQS and EventBridge as far as the stack uses them, configured only by the synthesized template."""
