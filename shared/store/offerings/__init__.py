"""What is stored about offerings: which are unavailable, and their history."""
