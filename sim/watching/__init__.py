"""CloudWatch as far as alarms need it: what was measured, and what an alarm makes of it."""
