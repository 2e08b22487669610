"""What IAM would answer, offline: policies and requests as values, and one verdict."""
