"""Single AWS services of the account: STS, CodeDeploy, CloudWatch, subscriptions, EKS access entries."""
