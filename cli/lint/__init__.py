"""`joiner lint`: likely mistakes in manifests."""
