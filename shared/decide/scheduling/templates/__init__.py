"""NodeClaim templates: what each NodePool can launch, daemon overhead and overlays."""
