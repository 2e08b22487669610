variable "cluster" {
  description = "Name of the EKS cluster. It must be the cluster of the bundle."
  type        = string

  validation {
    condition     = can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$", var.cluster))
    error_message = "cluster must be the name of an EKS cluster: letters, digits, hyphens and underscores, at most 100."
  }
}

variable "bundle" {
  description = "Folder of the bundle that `make bundle` wrote, with bundle.json."
  type        = string

  validation {
    condition     = fileexists("${var.bundle}/bundle.json")
    error_message = "bundle must be a folder with bundle.json: run `make bundle CLUSTER=NAME TO=FOLDER`."
  }
}

variable "assets_bucket" {
  description = "S3 bucket for the template and the zip files of the functions, in the region of the stack."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.assets_bucket))
    error_message = "assets_bucket must be the name of an S3 bucket, without s3:// and without a path."
  }
}

variable "assets_folder" {
  description = "Folder with the zip files that `make bundle` wrote, to upload them. If null, they are in the bucket already."
  type        = string
  default     = null
}

variable "stack_name" {
  description = "Name of the CloudFormation stack. If null, the name in the bundle, which `joiner` and `cdk` use, too."
  type        = string
  default     = null

  validation {
    condition     = var.stack_name == null || can(regex("^[A-Za-z][A-Za-z0-9-]{0,127}$", var.stack_name))
    error_message = "stack_name must start with a letter and have only letters, digits and hyphens, at most 128."
  }
}

variable "iam_role_arn" {
  description = "IAM role with which CloudFormation creates the resources. If null, the permissions of the caller."
  type        = string
  default     = null

  validation {
    condition     = var.iam_role_arn == null || can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", var.iam_role_arn))
    error_message = "iam_role_arn must be the ARN of an IAM role."
  }
}

variable "tags" {
  description = "Tags of the stack and of the uploaded objects. CloudFormation copies the tags of the stack to its resources."
  type        = map(string)
  default     = {}
}
