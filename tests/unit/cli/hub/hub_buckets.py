"""The example journal as a bucket in memory."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cli.hub.cluster_buckets import FolderBucket
from sim.world.memory_ports import MemoryBucket

EXAMPLE: Final = Path(__file__).parents[4] / "examples/journal"
AT: Final = datetime(2026, 11, 21, 9, 9, tzinfo=UTC)
"""Just after the last entry of the example journal."""


def make_memory_bucket() -> MemoryBucket:
    bucket, copy = MemoryBucket(), FolderBucket(EXAMPLE)
    for key in copy.list_keys(""):
        bucket.put(key, copy.get(key))
    return bucket
