"""Whether a disruption pays: its savings, how long they last, and what it costs."""
