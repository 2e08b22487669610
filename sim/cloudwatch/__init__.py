"""CloudWatch as far as alarms need it: recorded metrics, and the evaluation of alarms."""
