"""Names derived from content."""

from hashlib import sha256

import msgspec


def digest(*parts: object) -> str:
    """Answer 32 hex digits that stand for *parts*; equal content is the same digest in every process."""
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]
