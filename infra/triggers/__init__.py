"""Triggers of the functions: schedules, queues, EventBridge rules and the scheduler's log."""
