"""Reading of old manifests and writing of new ones, with a remark for each change."""
