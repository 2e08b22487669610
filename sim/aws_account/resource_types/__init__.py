"""Resource providers: create, update and delete each CloudFormation resource type with the account's own services."""
