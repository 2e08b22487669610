"""The catalog in S3: its keys, the newest one, and writing it."""

import re
from collections.abc import Iterator
from datetime import UTC
from typing import Final

from shared.errors import NotFound
from shared.model.cloud_provider.instance_type import Catalog
from shared.ports.storage import Bucket
from shared.store.catalog_format import compress_body, encode_catalog

CATALOG_PREFIX: Final = "catalogue/"
NEWEST_CATALOG_KEY: Final = f"{CATALOG_PREFIX}newest"
"""The object key that holds the key of the newest catalog."""
_KEY_TIME_FORMAT: Final = "%Y%m%dT%H%M%SZ"
_KEY_PATTERN: Final = re.compile(rf"{CATALOG_PREFIX}\d{{8}}T\d{{6}}Z\.json(\.gz)?")


def build_catalog_key(catalog: Catalog) -> str:
    """Return the object key of *catalog*, like ``catalogue/20261121T080000Z.json.gz``; later catalogs sort last.

    Raises:
        ValueError: the catalog has neither a creation time nor a pricing time.
    """
    timestamp = catalog.built_at or catalog.priced_at
    if timestamp is None:
        raise ValueError("the key of a catalog is the time of its creation")
    return f"{CATALOG_PREFIX}{timestamp.astimezone(UTC):{_KEY_TIME_FORMAT}}.json.gz"


def list_catalog_keys(bucket: Bucket) -> tuple[str, ...]:
    """Return the keys of the catalogs in *bucket*, oldest first.

    Raises:
        Fault: the bucket could not be read.
    """
    return tuple(sorted(key for key in bucket.list_keys(CATALOG_PREFIX) if _KEY_PATTERN.fullmatch(key)))


def iterate_newest_catalog_keys(bucket: Bucket) -> Iterator[str]:
    """Yield the keys of the catalogs in *bucket*, newest first.

    The first key is read from the object `NEWEST_CATALOG_KEY`, because a list request costs twelve times as much as a
    get request. The bucket is listed only if that object is missing or the caller asks for another catalog.

    Raises:
        Fault: the bucket could not be read.
    """
    try:
        newest_key = bucket.get(NEWEST_CATALOG_KEY).decode(errors="replace")
    except NotFound:
        newest_key = ""
    if _KEY_PATTERN.fullmatch(newest_key):
        yield newest_key
    yield from (key for key in reversed(list_catalog_keys(bucket)) if key != newest_key)


def write_catalog(catalog: Catalog, bucket: Bucket) -> None:
    """Write *catalog*, then record it as the newest. Until then, the previous catalog remains the newest.

    Raises:
        Fault: the bucket refused the write.
        ValueError: the catalog has neither a creation time nor a pricing time.
    """
    key = build_catalog_key(catalog)
    bucket.put(key, compress_body(encode_catalog(catalog)))
    bucket.put(NEWEST_CATALOG_KEY, key.encode())
