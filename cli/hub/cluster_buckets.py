"""The buckets of clusters, opened for reading: in S3, with an assumed role if one is given, or copies in folders."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from cli.hub.hub_file import HubCluster
from cli.hub.summary.read_only_bucket import ReadOnlyBucket
from shared.errors import NotFound, Unreachable
from shared.ports.storage import Bucket


class FolderBucket(ReadOnlyBucket):
    """A copy of a bucket in a folder, for reading."""

    def __init__(self, folder: Path) -> None:
        """Read files below *folder*; their relative paths are the keys."""
        self._folder = folder

    def get(self, key: str) -> bytes:
        """Read the file of *key*.

        Raises:
            NotFound: it does not exist.
            Unreachable: it cannot be read.
        """
        try:
            return (self._folder / key).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"{self._folder / key}: file not found") from None
        except OSError as error:
            raise Unreachable(f"{self._folder / key}: {error.strerror}") from None

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Return the keys that begin with *prefix*, sorted."""
        parent = self._folder / prefix.rpartition("/")[0]
        keys = (path.relative_to(self._folder).as_posix() for path in parent.rglob("*") if path.is_file())
        return tuple(sorted(key for key in keys if key.startswith(prefix)))


class TurnTakingBucket(ReadOnlyBucket):
    """A bucket for one of several threads: the thread holds *turn*, except while it waits for the bucket.

    So requests are parallel, but only one thread decodes: msgspec inspects the structs of a type when it decodes the
    first value, and threads that do that at once can crash.
    """

    def __init__(self, bucket: Bucket, turn: Lock) -> None:
        """Read *bucket*; the caller holds *turn*."""
        self._bucket, self._turn = bucket, turn

    def get(self, key: str) -> bytes:
        """Return the object *key* without holding the turn."""
        with self._release_turn():
            return self._bucket.get(key)

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Return the keys that begin with *prefix* without holding the turn."""
        with self._release_turn():
            return self._bucket.list_keys(prefix)

    @contextmanager
    def _release_turn(self) -> Iterator[None]:
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()


@contextmanager
def open_cluster_bucket(cluster: HubCluster) -> Iterator[Bucket]:
    """Open the bucket of *cluster*; with a role, its credentials are used only for this bucket.

    Raises:
        Fault: the role cannot be assumed.
        NotFound: the folder does not exist.
    """
    if cluster.folder:
        folder = Path(cluster.folder)
        if not folder.is_dir():
            raise NotFound(f"{cluster.folder}: folder not found")
        yield FolderBucket(folder)
        return
    from shared.aws.clients import Clients, assume_role  # noqa: PLC0415 - boto3 takes half a second
    from shared.aws.s3 import S3Bucket  # noqa: PLC0415

    callers_clients = Clients(cluster.region)
    clients = callers_clients
    try:
        if cluster.role:
            credentials = assume_role(callers_clients, cluster.role, cluster.external_id, "joiner-hub")
            clients = callers_clients.build_assumed_clients(credentials)
        yield S3Bucket(clients, cluster.bucket)
    finally:
        clients.close()
        callers_clients.close()
