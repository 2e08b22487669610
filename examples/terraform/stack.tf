resource "aws_s3_object" "assets" {
  for_each = local.assets

  bucket      = var.assets_bucket
  key         = each.key
  source      = "${var.assets_folder}/${each.value.file}"
  source_hash = each.value.sha256
  tags        = var.tags

  depends_on = [terraform_data.bundle]

  lifecycle {
    # If an update fails, CloudFormation deploys the previous zip files again: they are deleted after the update.
    create_before_destroy = true
  }
}

resource "aws_s3_object" "template" {
  bucket       = var.assets_bucket
  key          = local.template_key
  source       = local.template
  source_hash  = local.index.stack.template.sha256
  content_type = "application/json"
  tags         = var.tags

  depends_on = [terraform_data.bundle]

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "joiner" {
  name         = local.stack_name
  capabilities = local.index.stack.capabilities
  template_url = local.template_url
  parameters   = { AssetsBucket = var.assets_bucket }
  iam_role_arn = var.iam_role_arn
  tags         = var.tags

  depends_on = [aws_s3_object.assets, aws_s3_object.template]

  # A deployment with a canary takes about ten minutes, a removal of nodes with `on-destroy: purge` up to 15 minutes.
  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }
}
