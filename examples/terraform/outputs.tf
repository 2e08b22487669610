output "version" {
  description = "Version of Joiner in the bundle."
  value       = local.index.version
}

output "digest" {
  description = "Digest of the bundle: it changes with the code, the template and the cluster objects."
  value       = local.index.digest
}

output "stack_name" {
  description = "Name of the CloudFormation stack."
  value       = aws_cloudformation_stack.joiner.name
}

output "instance_profile" {
  description = "Instance profile of nodes whose EC2NodeClass has spec.role."
  value       = aws_cloudformation_stack.joiner.outputs["JoinerInstanceProfile"]
}

output "windows_instance_profile" {
  description = "Instance profile for EC2NodeClasses with Windows images. Null without `windows: true`."
  value       = lookup(aws_cloudformation_stack.joiner.outputs, "WindowsInstanceProfile", null)
}

output "journal_bucket" {
  description = "S3 bucket with the journal, the catalog and cost reports, for `joiner --journal s3://BUCKET`."
  value       = aws_cloudformation_stack.joiner.outputs["JoinerBucketName"]
}

output "installed" {
  description = "What the installer changed in the cluster. With `cluster-objects: external`: no changes."
  value       = aws_cloudformation_stack.joiner.outputs["Installed"]
}
