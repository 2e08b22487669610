"""Times of a local calendar: cron schedules, time zones, windows."""
