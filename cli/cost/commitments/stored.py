"""The commitments that `catalog` stored, with the setting `commitments`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cli.planning.catalog_source import load_catalog
from cli.terminal.errors import InputError
from shared.model.cluster import ClusterSnapshot
from shared.model.ec2.commitments import Commitments
from shared.store.catalog import NEWEST_CATALOG_KEY

_NO_SOURCE: Final = "--commitments: without FILE, it needs --journal: name a FILE, or add --journal s3://BUCKET"
_NOT_STORED: Final = "the newest catalog has no commitments: name a FILE, or set commitments: account or bucket"


def read_stored_commitments(source: str) -> Commitments:
    """Return the commitments of the newest catalog in *source*: a folder, or ``s3://bucket``.

    Raises:
        InputError: There is no catalog, or it has no commitments.
    """
    if not source:
        raise InputError(_NO_SOURCE)
    now = datetime.now(UTC)
    catalog, _ = load_catalog(_find_catalog(source), ClusterSnapshot(taken_at=now), (), now)
    if catalog.commitments is None:
        raise InputError(f"--commitments: {source}: {_NOT_STORED}")
    return catalog.commitments


def _find_catalog(source: str) -> str:
    """Return the source of the newest catalog: a bucket itself, or a file in a folder."""
    if source.startswith("s3://"):
        return source
    newest = Path(source, NEWEST_CATALOG_KEY)
    return str(Path(source, newest.read_text())) if newest.is_file() else str(newest)
