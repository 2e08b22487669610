"""The EC2 client: requests, responses and filters."""
