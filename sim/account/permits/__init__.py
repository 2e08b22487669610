"""What IAM is asked for each request, and what it answers by the policies that are deployed."""
