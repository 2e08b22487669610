# The bundle that `make bundle` wrote, and whether it belongs to this cluster and account.
locals {
  index      = jsondecode(file("${var.bundle}/bundle.json"))
  template   = "${var.bundle}/${local.index.stack.template.file}"
  stack_name = coalesce(var.stack_name, local.index.stack.name)

  # The digest is in the key: CloudFormation updates a stack only if the URL of its template changes.
  template_key = "joiner/${local.index.digest}/${local.index.stack.template.file}"
  template_url = "https://${var.assets_bucket}.s3.${local.region}.${local.dns_suffix}/${local.template_key}"

  assets = var.assets_folder == null ? {} : { for asset in local.index.assets : asset.key => asset }
}

resource "terraform_data" "bundle" {
  input = local.index.digest

  lifecycle {
    precondition {
      condition     = local.index.kind == "Bundle" && local.index.apiVersion == "joiner/v1"
      error_message = "${var.bundle}/bundle.json has another format: use the module and the bundle of the same version."
    }
    precondition {
      condition     = local.index.cluster == var.cluster
      error_message = "${var.bundle} is the bundle of the cluster ${local.index.cluster}, not of ${var.cluster}."
    }
    precondition {
      condition     = filesha256(local.template) == local.index.stack.template.sha256
      error_message = "${local.template} was changed after `make bundle` wrote it: write the bundle again."
    }
    precondition {
      condition     = contains(["", local.account], local.index.account)
      error_message = "The bundle is for the account ${local.index.account}, but the provider uses ${local.account}."
    }
    precondition {
      condition     = contains(["", local.region], local.index.region)
      error_message = "The bundle is for the region ${local.index.region}, but the provider uses ${local.region}."
    }
  }
}
