"""VPC configuration of the functions, and their VPC endpoints."""
