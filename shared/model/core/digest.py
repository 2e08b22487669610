"""Names derived from content."""

from hashlib import sha256

import msgspec


def compute_digest(*parts: object) -> str:
    """Return 32 hex digits that identify *parts*; equal content has the same digest in every process."""
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]
