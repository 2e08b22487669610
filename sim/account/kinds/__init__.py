"""What CloudFormation does for each type of resource, by calls to the account's own services."""
