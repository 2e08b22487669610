"""Instance types and prices of the embedded cloud."""
