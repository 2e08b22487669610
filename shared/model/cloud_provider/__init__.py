"""Values between scheduling and EC2: instance types, launch groups, reservations."""
