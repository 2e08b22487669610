"""Event sources of the functions: EventBridge, queues, schedules and deliveries."""
