# One cluster. The cluster objects are applied by Argo CD (examples/argocd), or by the module cluster-objects below.
terraform {
  required_version = ">= 1.5"
}

variable "region" {
  description = "Region of the cluster."
  type        = string
}

variable "assets_bucket" {
  description = "S3 bucket for the template and the zip files, in this region."
  type        = string
}

provider "aws" {
  region = var.region
}

module "joiner" {
  source = "../"

  cluster       = "prod"
  bundle        = "${path.root}/joiner"
  assets_bucket = var.assets_bucket
  assets_folder = "${path.root}/assets"
  tags          = { team = "platform" }

  # Only with the module below: the cluster objects are applied before the stack.
  # depends_on = [module.joiner_cluster_objects]
}

# module "joiner_cluster_objects" {
#   source = "../cluster-objects"
#   bundle = "${path.root}/joiner"
# }

output "instance_profile" {
  description = "For spec.instanceProfile of EC2NodeClasses."
  value       = module.joiner.instance_profile
}
