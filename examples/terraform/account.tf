# Where the provider deploys.
data "aws_region" "current" {}

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

locals {
  region     = data.aws_region.current.id
  dns_suffix = data.aws_partition.current.dns_suffix
  account    = data.aws_caller_identity.current.account_id
}
