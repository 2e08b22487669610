"""What stands for a snapshot in the journal."""

from hashlib import sha256
from typing import Final

import msgspec

from shared.model.cluster import Cluster

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def snapshot_digest(cluster: Cluster) -> str:
    """Answer 32 hex digits that stand for what *cluster* says; the same in every process.

    The catalogue stands there by the instant of its prices, which is its key in the bucket: it alone is 3 MB.
    """
    priced_at = cluster.catalogue.priced_at if cluster.catalogue is not None else None
    small = msgspec.structs.replace(cluster, catalogue=None)
    return sha256(_ENCODER.encode((small, priced_at))).hexdigest()[:32]
