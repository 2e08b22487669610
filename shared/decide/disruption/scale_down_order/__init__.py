"""Which nodes scale-downs should empty first, and the deletion costs of their pods."""
