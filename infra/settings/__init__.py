"""Settings of a deployment: CDK context values, their defaults and their validation."""
