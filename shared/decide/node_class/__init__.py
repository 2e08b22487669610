"""Status and validation of EC2NodeClasses."""
