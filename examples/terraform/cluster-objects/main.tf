# The cluster objects of a bundle, for installations without Argo CD. Needs `cluster-objects: external` in the settings.
terraform {
  required_version = ">= 1.5"

  required_providers {
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = ">= 2.30"
    }
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

locals {
  index       = jsondecode(file("${var.bundle}/bundle.json"))
  manifests   = { for object in local.index.objects : "${object.kind}/${object.name}" => yamldecode(file("${var.bundle}/${object.file}")) }
  definitions = { for key, manifest in local.manifests : key => manifest if manifest.kind == "CustomResourceDefinition" }
  others      = { for key, manifest in local.manifests : key => manifest if manifest.kind != "CustomResourceDefinition" }
}

resource "kubernetes_manifest" "definitions" {
  for_each = local.definitions

  manifest = each.value

  # The stack of an earlier version may have created the object: its fields become Terraform's.
  field_manager {
    name            = "terraform-joiner"
    force_conflicts = true
  }

  lifecycle {
    # With a CRD, Kubernetes deletes all its objects: without NodePools and NodeClaims, all nodes are terminated.
    prevent_destroy = true

    precondition {
      condition     = local.index.clusterObjects == "external"
      error_message = "The stack installs the cluster objects itself: set `cluster-objects: external` in clusters/${local.index.cluster}.yaml, and write the bundle again."
    }
  }
}

resource "kubernetes_manifest" "others" {
  for_each = local.others

  manifest = each.value

  field_manager {
    name            = "terraform-joiner"
    force_conflicts = true
  }

  depends_on = [kubernetes_manifest.definitions]
}

output "digest" {
  description = "Digest of the bundle whose objects are in the cluster. Use it so that the stack is updated after them."
  value       = local.index.digest
  depends_on  = [kubernetes_manifest.others]
}
