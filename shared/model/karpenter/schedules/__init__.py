"""The annotation of schedules: its grammar, and which values an object can have."""
