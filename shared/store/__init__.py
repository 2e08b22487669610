"""Rows in DynamoDB and documents in S3, one file for each kind."""
