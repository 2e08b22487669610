"""The installer function: a CloudFormation custom resource that installs what Joiner needs in the cluster."""
