"""`joiner convert`: manifests of older Karpenter versions as karpenter.sh/v1."""
