"""The Kubernetes API as a protocol."""

from collections.abc import Callable
from typing import Protocol

import msgspec


class WatchEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a collection since a version of it."""

    events: tuple[bytes, ...] = ()
    """WatchEvent documents, oldest first, as ``{"type": "MODIFIED", "object": {…}}``: ADDED, MODIFIED, DELETED only."""
    version: str
    """The resourceVersion to continue from: *events* contains every change up to it."""
    count: int | None = None
    """Number of objects in the collection after *events*, regardless of selectors; None: the server did not say."""


class Kube(Protocol):
    """The Kubernetes API, in paths and JSON: ``/api/v1/nodes``, ``/api/v1/namespaces/shop/pods/cart/eviction``."""

    def list(
        self,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> bytes:
        """Return one page of the collection at *path*.

        A List document, with `metadata.continue` if there are more pages.

        Raises:
            Expired: *continue_token* is too old (410).
            Unreachable: the API server did not respond; never an empty list instead.
        """

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        """Start to watch the collection at *path* from the resourceVersion *since* (of a list, or of `WatchEvents`).

        Several watches can be started before the first is asked for its changes: they are waited for together. The
        changes show the collection at least as it was when `watch` was called. An object that leaves the selection is
        DELETED.

        Raises:
            Expired: the history does not reach back to *since* (410), or *since* is not of this server: list again.
                Raised
                here or when the changes are requested, as every other Fault.
        """

    def read(self, path: str) -> bytes:
        """Return the object at *path*.

        Raises:
            NotFound: the object does not exist.
        """

    def create(self, path: str, body: bytes) -> bytes:
        """Create in the collection (or POST to the subresource) at *path*; return the stored object.

        Raises:
            Conflict: the name already exists.
            EvictionRefused: *path* ends in /eviction and a PodDisruptionBudget forbids the eviction.
            Invalid: the object's schema or an admission rule rejects the object.
        """

    def patch(self, path: str, body: bytes) -> bytes:
        """Merge-patch (RFC 7386) the object or subresource at *path*; return the stored object.

        A `metadata.resourceVersion` in *body* is a precondition.

        Raises:
            Conflict: the precondition does not hold.
            NotFound: the object does not exist.
        """

    def delete(self, path: str, body: bytes = b"") -> None:
        """Delete the object at *path*; *body* is a DeleteOptions document.

        Raises:
            Conflict: a precondition (uid) does not hold.
            NotFound: the object does not exist.
        """
