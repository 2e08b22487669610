"""CreateFleet requests and results, subnets, limits and the circuit breaker."""
