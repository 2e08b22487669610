"""The example journal as a bucket in memory."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.hub.cluster_buckets import FolderBucket
from shared.ports.storage import Bucket
from sim.world.memory_ports import MemoryBucket

EXAMPLE: Final = Path(__file__).parents[4] / "examples/journal"
AT: Final = datetime(2026, 11, 21, 9, 9, tzinfo=UTC)
"""Just after the last entry of the example journal."""


def make_memory_bucket() -> MemoryBucket:
    bucket, copy = MemoryBucket(), FolderBucket(EXAMPLE)
    for key in copy.list_keys(""):
        bucket.put(key, copy.get(key))
    return bucket


class WritableFolder(FolderBucket):
    """A folder that a test changes."""

    def __init__(self, folder: Path) -> None:
        """Write below *folder*."""
        super().__init__(folder)
        self._path = folder

    def put(self, key: str, body: bytes) -> None:  # type: ignore[override]
        """Write a file."""
        (self._path / key).write_bytes(body)


def put_newest_record(bucket: Bucket, change: Callable[[dict[str, Any]], object]) -> None:
    """Write an entry of `disrupt` that is newer than all others; its record is a changed one of `provision`."""
    entries = [msgspec.json.decode(bucket.get(key)) for key in bucket.list_keys("journal/provision/")]
    record_key = next(entry["snapshot"] for entry in entries if entry.get("snapshot"))
    record = msgspec.json.decode(gzip.decompress(bucket.get(record_key)))
    change(record)
    bucket.put("snapshot/changed.json.gz", gzip.compress(msgspec.json.encode(record)))
    entry = {"function": "disrupt", "at": "2026-11-21T09:08:59Z", "snapshot": "snapshot/changed.json.gz", "code": "new"}
    bucket.put("journal/disrupt/2026/11/21/090859-x.json", msgspec.json.encode(entry))
