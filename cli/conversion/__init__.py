"""Manifests of older Karpenters -> those of karpenter.sh/v1: same meaning, and a line of why for each change."""
